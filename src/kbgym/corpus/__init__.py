"""Your own documents as a world: a folder of files in, one self-contained sentence a document out.

    files.py       which files there are, and what is wrong with the ones that cannot be read
    blocks.py      what every reader gives: pages of blocks, each knowing where in its file it stands
    markdown.py, hypertext.py, rows.py     the readers: Markdown, HTML, and plain text, JSONL, CSV
    sentences.py   blocks into sentences, each with the title and section it needs to stand alone
    rewriting.py   a sentence with its surroundings, and what a rewriting of it may not do
    build.py       all of it together: files into documents with stable ids, links, and a report
    questions.py, duplicates.py, splitting.py     questions from CSV or JSONL, near-duplicates, splits
    update.py      what changed between two imports, and which ids stay
    make.py        a world from paths and a questions file, new or following an old one

Nothing here knows stores, traces, agents or models.
"""
