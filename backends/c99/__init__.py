"""C99: the program as one header and one source file that need libc and libm alone."""
