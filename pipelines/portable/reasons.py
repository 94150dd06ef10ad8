"""The cause of a job's failure, in one line, from the message of an engine."""

import re

from rankbeam.transforms.records.suggestions import shortened

_STEP = re.compile(r"(?P<what>[^\n]+) \[while running '(?P<step>[^']*)'\]")
_LONGEST = 600


def reason(message: str) -> str:
    """The cause of a job's failure: the step that failed, where the message names one.

    >>> reason("Pipeline j_1 failed in state FAILED: java.io.IOException: Insufficient number of buffers\\n\\tat a.B")
    'the job failed: java.io.IOException: Insufficient number of buffers'
    >>> reason("Traceback (most recent call last):\\n  …\\nValueError: no [while running 'Read-ptransform-3']")
    'the job failed: ValueError: no (in step Read)'
    """
    if (step := _STEP.search(message)) is not None:
        name = re.sub(r"-ptransform-\d+$", "", step["step"])
        return f"the job failed: {shortened(step['what'].strip(), _LONGEST)} (in step {name})"
    if "in state CANCELLED" in message:
        return "the job was cancelled"
    first = message.partition("failed in state FAILED: ")[2] or message
    return f"the job failed: {shortened(first.strip().partition(chr(10))[0], _LONGEST)}"
