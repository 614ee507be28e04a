"""Tables of interactions and of edges, from text and Parquet files."""
