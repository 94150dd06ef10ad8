"""The file that the launcher of Dataflow templates starts; it calls the installed package."""

from rankbeam.pipelines.dataflow.flex_template import main

if __name__ == "__main__":
    main()
