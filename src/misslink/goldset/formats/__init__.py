"""Import and export gold sets of other tools.

A format is one file with one ``@formats.register`` line, here or in another package (entry point
``misslink.goldset_formats``).
"""
