"""Parts for PyTorch that at least two models use; they need torch and numpy, and nothing else of corank."""
