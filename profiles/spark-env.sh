# Spark's launcher reads this file from beside spark-defaults.conf before it starts Java.
# `make install` renders it, with quoted values for the ${...} marks.

# Without the lake's JARs Spark starts, and fails later with the name of a class. Those that
# were never fetched, or went with a cleaned cache, are fetched now, whatever starts Spark;
# and their classes are archived, again when a JAR is newer than the archive.
(
    folder=${SPARK_PARTS}
    [ -f ${CLASS_ARCHIVE} ] || exit 1
    [ ! "$folder" -nt ${CLASS_ARCHIVE} ] && [ ! ${SPARK_JARS} -nt ${CLASS_ARCHIVE} ] || exit 1
    [ -f "$folder.json" ] || exit 1
    sed -n 's/^ "\(.*\)": \[$/\1/p' "$folder.json" | while IFS= read -r file; do
        [ -f "$folder/$file" ] || exit 1
    done
) || ${PYTHON} -P -m sandbox.install.spark_conf --fetch >&2 || exit 2

# Spark 4 loads Java's vector module, and Java warns about that on every start; no option
# turns the line off, so it is taken out of what Java prints.
exec 2> >(grep --line-buffered -v 'WARNING: Using incubator modules: jdk.incubator.vector' >&2)
