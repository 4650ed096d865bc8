"""Import files as a world: passages and cards, or sentences.

    files.py            find the files, and report those that cannot be read
    reader_process.py   read each file in a child process with limits
    reading.py          a file of any format as pages of blocks, and the words that are in none
    markdown.py, markdown_inline.py, html.py, records.py, fields.py     the formats
    statements.py       sentences, and statements with what they need to be understood
    passages.py         statements packed into cards and passages
    documents.py        documents with ids, links and a report
    questions.py, splits.py     questions from CSV or JSONL, near-duplicates, splits, groups
    importing.py        a world from paths and a questions file, new or updated
    update.py, store_update.py  changes between two imports; a store that follows its files

`importing` and the modules it uses are independent of stores, traces, agents and models.
"""
