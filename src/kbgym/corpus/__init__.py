"""Import a folder of files as a world: one self-contained sentence per document.

    files.py         find the files, and report those that cannot be read
    blocks.py        the readers' output: pages of blocks with their position in the file
    markdown.py, inline.py, hypertext.py, rows.py     readers of Markdown, HTML, plain text, JSON, JSONL and CSV
    sentences.py     split blocks into sentences
    standalone.py    prefix each sentence with the title and sections it needs
    rewriting.py     a sentence with its context, and the checks on a rewritten one
    build.py         files into documents with stable ids, links and a report
    questions.py, splitting.py     questions from CSV or JSONL, near-duplicates, splits
    update.py        changes between two imports, and the ids that stay
    make.py          a world from paths and a questions file, new or updated

`make` and the modules it uses are independent of stores, traces, agents and models.
"""
