"""The Python API: evaluate, score and judge, with Python values as inputs and Arrow tables as results."""
