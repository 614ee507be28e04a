"""The machine around a process: files that are whole or not there, names of files, memory, and limits of containers."""
