"""Everything that shows a run, a sweep or a frontier: HTML, plots, tables. Nothing below the command line imports it."""
