"""The explorer: a page over a store, and the HTTP interface behind it.

It reads through `clew.query` only, so the page, the command line and Python give the same answers.
FastAPI and uvicorn come with the extra `explore`; nothing here is imported unless they are needed.
"""
