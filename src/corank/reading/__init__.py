"""Tables of interactions and of edges, from text files, Parquet files and data frames."""
