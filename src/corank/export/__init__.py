"""What a fitted model hands to other systems: vectors, a search index, an ONNX network. Each is checked when made."""
