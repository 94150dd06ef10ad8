"""Readers of queries, corpora, judgements and runs; they recognise a file's format by its content, without a flag.

What readers accept and refuse:

    byte order mark, CRLF, blank lines, .gz      accepted
    ids with blanks, quotes, slashes, unicode    accepted (blanks not in TREC's blank-separated files)
    float grades, grades below 0                 accepted; below 0 means "pooled, not judged"
    a fourth column `source` of BEIR judgements  accepted, ignored
    trailing words on a run's line, # comments   accepted, ignored, as trec_eval does (100 words at most)
    an empty document or query                   accepted, counted in a warning
    a repeated judgement                         accepted once, counted in a warning
    two grades for one document                  refused, with both lines
    a repeated id (queries, corpus)              refused, with both lines
    too few columns, not a number, NaN, infinity refused, with the line
    a rank not a number (a blank in an id)       refused, with the line
    lines that do not end with LF or CRLF        refused, with the line
    a truncated gzip file, bytes not UTF-8       refused, with the line
    a byte order mark inside, NUL bytes          refused, with the line
    an id of over 8,192 bytes, or neither text   refused, with the line
      nor number (true, a list, NaN)
    no row, or two columns with one name         refused
"""
