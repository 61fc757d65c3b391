"""The plan: definition, compiler and traversal engine. Pure: no trio, no I/O."""
