# Spark's launcher reads this file from beside spark-defaults.conf before it starts Java.
# Spark 4 loads Java's vector module, and Java warns about that on every start; no option
# turns the line off, so it is taken out of what Java prints.
exec 2> >(grep --line-buffered -v 'WARNING: Using incubator modules: jdk.incubator.vector' >&2)
