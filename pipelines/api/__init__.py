"""The Python API: what the commands evaluate and score do, with values of Python in and Arrow tables out."""
