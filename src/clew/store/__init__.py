"""Where provenance is kept: a folder of Parquet and JSON files."""
