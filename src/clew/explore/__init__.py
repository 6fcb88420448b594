"""The explorer: a page over a store, and the HTTP interface behind it.

It reads through `clew.ask` only, so the page, the command line and Python give the same answers.
FastAPI and uvicorn come with the extra `explore`; nothing here is imported unless they are needed.
"""
