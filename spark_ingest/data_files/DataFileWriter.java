package millrace;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.parquet.ParquetUtil;
import org.apache.iceberg.shaded.org.apache.parquet.ParquetReadOptions;
import org.apache.iceberg.shaded.org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.iceberg.shaded.org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.iceberg.spark.SparkStructLike;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.DataType;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes Parquet files with a table's location provider and FileIO, and creates their metadata as
 * Iceberg's own writers do.
 *
 * <p>Its input are parts of files from parquet.py: a header, then bytes, for each.
 */
public final class DataFileWriter implements FlatMapFunction {
    // Columns of a header.
    private static final int FILE = 0;
    private static final int ROWS = 1;
    private static final int SPLITS = 2;
    private static final int NANS = 3;
    private static final int PARTITION = 4;
    // After a footer: its length, and "PAR1".
    private static final int END_BYTES = 8;
    private static final ParquetReadOptions DEFAULTS =
            ParquetReadOptions.builder(new PlainParquetConfiguration()).build();

    private final Table table;
    private final String operation;

    /** Takes a serializable copy of the table, and the operation id for the file names. */
    public DataFileWriter(Table table, String operation) {
        if (!(table.encryption() instanceof PlaintextEncryptionManager)) {
            throw new UnsupportedOperationException("the table's files are encrypted");
        }
        this.table = table;
        this.operation = operation;
    }

    /** Writes a task's files; returns the data files for a commit. */
    public Iterator call(Object given) throws IOException {
        Iterator parts = (Iterator) given;
        TaskContext task = TaskContext.get();
        int partitionId = task == null ? 0 : task.partitionId();
        long attemptId = task == null ? 0L : task.taskAttemptId();
        OutputFileFactory places =
                OutputFileFactory.builderFor(table, partitionId, attemptId)
                        .format(FileFormat.PARQUET)
                        .operationId(operation)
                        .build();
        Map open = new HashMap();
        List outputs = new ArrayList();
        List files = new ArrayList();
        boolean isWhole = false;
        try {
            while (parts.hasNext()) {
                Row row = header((byte[]) parts.next());
                byte[] bytes = (byte[]) parts.next();
                Integer number = Integer.valueOf(row.getInt(FILE));
                Output output = (Output) open.get(number);
                if (output == null) {
                    output = new Output(places, partition(row));
                    outputs.add(output);
                    open.put(number, output);
                }
                output.stream.write(bytes);
                if (!row.isNullAt(ROWS)) {
                    open.remove(number);
                    files.add(described(output, row));
                }
            }
            isWhole = open.isEmpty();
            if (!isWhole) {
                throw new IOException("a data file's last part did not come");
            }
        } finally {
            if (!isWhole) {
                remove(outputs);
            }
        }
        return files.iterator();
    }

    /** The row of an Arrow IPC stream. */
    private static Row header(byte[] stream) {
        Iterator only = Collections.singleton(stream).iterator();
        Tuple2 read =
                ArrowConverters$.MODULE$.fromBatchWithSchemaIterator(
                        CollectionConverters.asScala(only), null);
        scala.collection.Iterator rows = (scala.collection.Iterator) read._1();
        scala.Function1 convert =
                CatalystTypeConverters.createToScalaConverter((DataType) read._2());
        Row row = (Row) convert.apply(rows.next());
        // Without a task context, its buffers are closed after the last row.
        rows.hasNext();
        return row;
    }

    private StructLike partition(Row row) {
        if (table.spec().isUnpartitioned()) {
            return null;
        }
        Object[] values = new Object[row.size() - PARTITION];
        for (int i = 0; i < values.length; i++) {
            values[i] = row.get(PARTITION + i);
        }
        SparkStructLike wrapper = new SparkStructLike(table.spec().partitionType());
        return wrapper.wrap(org.apache.spark.sql.RowFactory.create(values));
    }

    private DataFile described(Output output, Row row) throws IOException {
        output.stream.close();
        InputFile written = output.file.encryptingOutputFile().toInputFile();
        DataFiles.Builder builder =
                DataFiles.builder(table.spec())
                        .withPath(written.location())
                        .withFormat(FileFormat.PARQUET)
                        .withFileSizeInBytes(written.getLength())
                        .withMetrics(metrics(written, row.getJavaMap(NANS)))
                        .withSplitOffsets(row.getList(SPLITS));
        if (output.partition != null) {
            builder.withPartition(output.partition);
        }
        return builder.build();
    }

    /** The metrics that Iceberg reads from a footer, with NaN counts, which a footer lacks. */
    private Metrics metrics(InputFile written, Map nans) throws IOException {
        Metrics read =
                ParquetUtil.footerMetrics(
                        footer(written), new ArrayList().stream(), MetricsConfig.forTable(table));
        Map counts = new HashMap();
        Iterator each = nans.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry count = (Map.Entry) each.next();
            if (read.valueCounts().containsKey(count.getKey())) {
                counts.put(count.getKey(), count.getValue());
            }
        }
        return new Metrics(
                read.recordCount(),
                read.columnSizes(),
                read.valueCounts(),
                read.nullValueCounts(),
                counts,
                read.lowerBounds(),
                read.upperBounds());
    }

    /**
     * The footer of a Parquet file. Not by Parquet's reader of files: it reads Hadoop's settings
     * from their XML for each, a fifth of the time of a small batch.
     */
    private static ParquetMetadata footer(InputFile written) throws IOException {
        SeekableInputStream stream = written.newStream();
        try {
            byte[] end = new byte[END_BYTES];
            long footerEnd = written.getLength() - END_BYTES;
            stream.seek(footerEnd);
            IOUtil.readFully(stream, end, 0, END_BYTES);
            stream.seek(footerEnd - ByteBuffer.wrap(end).order(ByteOrder.LITTLE_ENDIAN).getInt());
            return new ParquetMetadataConverter(DEFAULTS)
                    .readParquetMetadata(stream, ParquetMetadataConverter.NO_FILTER);
        } finally {
            stream.close();
        }
    }

    /** Deletes the unreferenced files of a failed task; a remaining one is an orphan file. */
    private void remove(List outputs) {
        for (int i = 0; i < outputs.size(); i++) {
            Output output = (Output) outputs.get(i);
            try {
                output.stream.close();
                table.io().deleteFile(output.file.encryptingOutputFile().location());
            } catch (Exception error) {
                // The task reports its original failure.
            }
        }
    }

    private static final class Output {
        final EncryptedOutputFile file;
        final StructLike partition;
        final PositionOutputStream stream;

        Output(OutputFileFactory places, StructLike partition) {
            this.partition = partition;
            file = partition == null ? places.newOutputFile() : places.newOutputFile(partition);
            stream = file.encryptingOutputFile().create();
        }
    }
}
