-- Executed once word_texts is filled.
CREATE INDEX word_texts_terms ON word_texts USING gin (terms);
CREATE TABLE word_counts AS SELECT word COLLATE "C" AS term, ndoc::bigint AS held
    FROM ts_stat('SELECT terms FROM word_texts')
    UNION ALL SELECT '', coalesce(sum(length), 0) FROM word_texts;
ALTER TABLE word_counts ADD PRIMARY KEY (term);
