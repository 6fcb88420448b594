"""The worked examples of the seed documents, as cases that run.

A case holds data, a pipeline, the rows that must come out and the source rows each of them was
made from. It needs nothing of clew: the same case runs on plain Spark DataFrames and on anything
else that has their verbs. Start at `case.py`; the examples stand in one file per document.
"""
