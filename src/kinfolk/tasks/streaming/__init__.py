"""Tables in files; those that are larger than memory, or that nobody wants to hold, are counted batch by batch.

- ``counting``: `count_rows`, the one way in; passes over the table and what they end in.
- ``counts``: what comes out, `Counts`, which ``fit_statistics`` of the naive Bayes models takes.
- ``scanning``: files and queries of polars, read whole (`read_file`) or as batches of columns; which column is the
  task, the label, the weight, and which are features.
- ``pages``: page headers of Parquet files, of which a damaged one would end the process.
- ``escaping``: text in CSV that a spreadsheet would run.
- ``reading``: batches as coded rows, and a sample of them.
- ``columns``: values as codes in the order in which they turn up, and what becomes of a column, by the rules of
  ``tasks.schema``.
- ``elsewhere``: tables that DuckDB, Dask or Spark hold, which group them.
- ``growing``: tables of counts that grow with the codes.
- ``quantiles``: exact quantiles of a column in a few passes.
"""
