"""Tables, figures and pages from the results of `rxo-lab`.

`results` reads results.json, `claims` puts values, rules and verdicts into words, `draw` makes figures,
`pages` the Markdown of docs/repro, and `html` the report. The command is in `__main__`.
"""
