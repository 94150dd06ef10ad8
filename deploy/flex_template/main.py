"""What the launcher of Dataflow templates starts. The work is in the installed package, not beside this file."""

from rankbeam.pipelines.dataflow.flex_template import main

if __name__ == "__main__":
    main()
