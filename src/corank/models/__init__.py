"""One file = one algorithm = one public class; `corank.find("wmf")` finds it by the name of the file."""
