"""Parts of a rankbeam pipeline, in floors: a module only imports from floors below its own.

kernels    numbers in, numbers out (NumPy and pyarrow)
records    plain values: names of metrics, failures, the schema of every table
clients    the outside world: files, retrievers, the local warehouse
<stages>   thin Beam transforms: read, retrieve, score, aggregate, write
"""
