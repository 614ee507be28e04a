"""What happens where data outgrows a machine, a memory or a dense matrix: the page `docs/results/scale.md`.

Each module here with an `ORDER` is a family of figures, with

- `CASES`, the names of what is measured one by one, each in a process of its own,
- `measure(case)`, a table of plain values,
- `section(found)`, Markdown from the last table of each case that has been measured.

What is measured is recorded in `recorded/scale/FAMILY.jsonl`, and the page is made of what is recorded.
"""
