"""Documents in folders: text, Markdown, HTML, DOCX and PDF files, each of which is one document."""
