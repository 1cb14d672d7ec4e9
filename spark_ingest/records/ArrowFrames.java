package millrace;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.TimeStampVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.iceberg.PartitionSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Converts Kafka records to frames: Arrow IPC streams of the rows of a bronze table.
 *
 * <p>Only certainly valid records become rows here. All others are returned undecoded, for
 * validation in Spark; beyond a task's limit it stops, and Spark validates the whole batch.
 */
public final class ArrowFrames implements FlatMapFunction {
    // Limits of a frame: its rows, the bytes of their records, and the values of its columns.
    private static final int MOST_ROWS = 20000;
    private static final int MOST_BYTES = 8 << 20;
    private static final int MOST_VALUES = 4000000;
    // Bytes of an undecoded record besides its key and value.
    private static final int ROW_BYTES = 192;

    private final String plan;
    private final PartitionSpec spec;
    private final CollectionAccumulator counts;

    /**
     * Creates the function of a batch.
     *
     * @param plan The plan of frames.py, as JSON.
     * @param spec The table's partition spec.
     * @param counts Receives the counts of each task's records.
     */
    public ArrowFrames(String plan, PartitionSpec spec, CollectionAccumulator counts) {
        this.plan = plan;
        this.spec = spec;
        this.counts = counts;
    }

    /** Fails if a schema does not fit the table's columns. */
    public void check() throws IOException {
        Frames frames = new Frames(Collections.emptyIterator());
        try {
            frames.value.checkAll();
            if (frames.key != null) {
                frames.key.checkAll();
            }
        } finally {
            frames.close();
        }
    }

    /** Frames of a task's Kafka records. */
    public Iterator call(Object records) throws IOException {
        final Frames frames = new Frames((Iterator) records);
        TaskContext task = TaskContext.get();
        if (task != null) {
            task.addTaskCompletionListener(
                    new TaskCompletionListener() {
                        public void onTaskCompletion(TaskContext context) {
                            counts.add(frames.counts());
                            frames.close();
                        }
                    });
        }
        return frames;
    }

    /**
     * The single frame of some records, in the driver, as from {@link #call}. Null if they do not
     * fit into one, or too many of them are undecoded.
     */
    public byte[] only(Object records) throws IOException {
        Frames frames = new Frames((Iterator) records);
        try {
            byte[] frame = frames.frame();
            counts.add(frames.counts());
            return frames.isFull || frames.hasNext() ? null : frame;
        } finally {
            frames.close();
        }
    }

    /** The sums of the counts of all tasks, and all their undecoded records: a row of frames.py. */
    public InternalRow total() {
        long[] sums = new long[4];
        List left = new ArrayList();
        Iterator each = counts.value().iterator();
        while (each.hasNext()) {
            InternalRow task = (InternalRow) each.next();
            for (int i = 0; i < sums.length; i++) {
                sums[i] += task.getLong(i);
            }
            left.addAll(Arrays.asList(task.getArray(sums.length).array()));
        }
        return row(sums[0], sums[1], sums[2], sums[3], left);
    }

    private static InternalRow row(long rows, long missed, long values, long others, List left) {
        Object[] all = {
            Long.valueOf(rows),
            Long.valueOf(missed),
            Long.valueOf(values),
            Long.valueOf(others),
            new GenericArrayData(left.toArray())
        };
        return new GenericInternalRow(all);
    }

    private final class Frames implements Iterator {
        private final Iterator records;
        private final BufferAllocator allocator = new RootAllocator();
        private final VectorSchemaRoot root;
        private final Map vectors = new HashMap();
        private final Payload value;
        private final Payload key;
        private final int longest;
        private final long mostLeft;
        private final PartitionColumns partition;
        private final VarBinaryVector keyBytes;
        private final IntVector partitionNumber;
        private final BigIntVector offset;
        private final TimeStampVector timestamp;
        private final ListVector headers;
        private final StructVector items;
        private final VarCharVector keys;
        private final VarBinaryVector values;
        private final IntVector schemaId;
        private final BitVector isTombstone;
        private final List constants = new ArrayList();
        private final Output output = new Output();
        private final int mostRows;
        private final List left = new ArrayList();
        private long allRows;
        private long missed;
        private long valueBytes;
        private long otherBytes;
        private long leftBytes;
        private boolean isFull;

        Frames(Iterator records) throws IOException {
            this.records = records;
            Map given = (Map) new ObjectMapper().readValue(plan, Map.class);
            root = VectorSchemaRoot.create(Schema.fromJSON((String) given.get("schema")), allocator);
            List all = root.getFieldVectors();
            mostRows = Math.max(1, Math.min(MOST_ROWS, MOST_VALUES / values(all)));
            for (int i = 0; i < all.size(); i++) {
                FieldVector vector = (FieldVector) all.get(i);
                vector.setInitialCapacity(mostRows / 4);
                vector.allocateNew();
                vectors.put(vector.getName(), vector);
            }
            longest = ((Number) given.get("longest")).intValue();
            List valueColumns = named((List) given.get("columns"));
            value = new Payload((Map) given.get("value"), valueColumns, longest);
            Map ofKeys = (Map) given.get("key");
            List keyColumns = named((List) given.get("key_columns"));
            key = ofKeys == null ? null : new Payload(ofKeys, keyColumns, longest);
            mostLeft = ((Number) given.get("most_left")).longValue();
            partition = new PartitionColumns(spec, root);
            keyBytes = (VarBinaryVector) vectors.get("_kafka_key");
            partitionNumber = (IntVector) vectors.get("_kafka_partition");
            offset = (BigIntVector) vectors.get("_kafka_offset");
            timestamp = (TimeStampVector) vectors.get("_kafka_timestamp");
            headers = (ListVector) vectors.get("_kafka_headers");
            items = (StructVector) headers.getDataVector();
            keys = (VarCharVector) items.getChild("key");
            values = (VarBinaryVector) items.getChild("value");
            schemaId = (IntVector) vectors.get("_schema_id");
            isTombstone = (BitVector) vectors.get("_is_tombstone");
            Iterator each = ((Map) given.get("constants")).entrySet().iterator();
            while (each.hasNext()) {
                Map.Entry constant = (Map.Entry) each.next();
                FieldVector vector = (FieldVector) vectors.get(constant.getKey());
                constants.add(new Constant(vector, constant.getValue()));
            }
        }

        /** The number of values in a row, counting one item per list. */
        private int values(List vectors) {
            int count = 0;
            for (int i = 0; i < vectors.size(); i++) {
                List inside = ((FieldVector) vectors.get(i)).getChildrenFromFields();
                count += inside.isEmpty() ? 1 : values(inside);
            }
            return count;
        }

        private List named(List names) {
            List found = new ArrayList();
            for (int i = 0; i < names.size(); i++) {
                found.add(vectors.get(names.get(i)));
            }
            return found;
        }

        public boolean hasNext() {
            return !isFull && records.hasNext();
        }

        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return frame();
        }

        byte[] frame() {
            List all = root.getFieldVectors();
            for (int i = 0; i < all.size(); i++) {
                ((FieldVector) all.get(i)).reset();
            }
            int rows = 0;
            long most = valueBytes + otherBytes + MOST_BYTES;
            while (rows < mostRows && valueBytes + otherBytes < most && hasNext()) {
                ConsumerRecord record = (ConsumerRecord) records.next();
                byte[] valueData = (byte[]) record.value();
                byte[] keyData = (byte[]) record.key();
                int valueSize = valueData == null ? 0 : valueData.length;
                int keySize = keyData == null ? 0 : keyData.length;
                // Spark's timestamps are in microseconds: an overflow fails the task.
                long micros = Math.multiplyExact(record.timestamp(), 1000L);
                boolean isRow =
                        valueSize <= longest
                                && keySize <= longest
                                && value.isGood(valueData, record.headers(), rows)
                                && (key == null || key.isGood(keyData, record.headers(), rows));
                int others = keySize + headers(record.headers(), isRow ? rows : -1);
                valueBytes += valueSize;
                otherBytes += others;
                if (isRow) {
                    metadata(record, micros, rows);
                    rows++;
                    continue;
                }
                missed++;
                leftBytes += valueSize + others + ROW_BYTES;
                if (leftBytes > mostLeft) {
                    isFull = true;
                } else {
                    left.add(undecoded(record, micros));
                }
            }
            allRows += rows;
            return bytes(rows);
        }

        InternalRow counts() {
            return ArrowFrames.row(allRows, missed, valueBytes, otherBytes, left);
        }

        void close() {
            root.close();
            allocator.close();
        }

        private void metadata(ConsumerRecord record, long micros, int row) {
            put(keyBytes, row, (byte[]) record.key());
            partitionNumber.setSafe(row, record.partition());
            offset.setSafe(row, record.offset());
            timestamp.setSafe(row, micros);
            if (record.value() == null || value.id < 0) {
                schemaId.setNull(row);
            } else {
                schemaId.setSafe(row, value.id);
            }
            isTombstone.setSafe(row, record.value() == null ? 1 : 0);
        }

        /** Writes a record's headers to a row, if any; returns their approximate bytes. */
        private int headers(Headers given, int row) {
            Iterator each = given.iterator();
            if (!each.hasNext()) {
                if (row >= 0) {
                    headers.setNull(row);
                }
                return 0;
            }
            int first = row < 0 ? 0 : headers.startNewValue(row);
            int count = 0;
            int size = 0;
            while (each.hasNext()) {
                Header header = (Header) each.next();
                byte[] name = header.key().getBytes(StandardCharsets.UTF_8);
                byte[] data = header.value();
                size += name.length + (data == null ? 0 : data.length);
                if (row >= 0) {
                    items.setIndexDefined(first + count);
                    put(keys, first + count, name);
                    put(values, first + count, data);
                }
                count++;
            }
            if (row >= 0) {
                headers.endValue(row, count);
            }
            return size;
        }

        private void put(BaseVariableWidthVector vector, int row, byte[] data) {
            if (data == null) {
                vector.setNull(row);
            } else {
                vector.setSafe(row, data, 0, data.length);
            }
        }

        /** A record as a row of Spark's Kafka source. */
        private InternalRow undecoded(ConsumerRecord record, long micros) {
            List headers = new ArrayList();
            Iterator each = record.headers().iterator();
            while (each.hasNext()) {
                Header header = (Header) each.next();
                Object[] pair = {UTF8String.fromString(header.key()), header.value()};
                headers.add(new GenericInternalRow(pair));
            }
            Object[] values = {
                record.key(),
                record.value(),
                UTF8String.fromString(record.topic()),
                Integer.valueOf(record.partition()),
                Long.valueOf(record.offset()),
                Long.valueOf(micros),
                headers.isEmpty() ? null : new GenericArrayData(headers.toArray())
            };
            return new GenericInternalRow(values);
        }

        private byte[] bytes(int rows) {
            for (int i = 0; i < constants.size(); i++) {
                ((Constant) constants.get(i)).fill(rows);
            }
            partition.fill(rows);
            root.setRowCount(rows);
            output.size = 0;
            try {
                ArrowStreamWriter writer = new ArrowStreamWriter(root, null, output);
                writer.start();
                writer.writeBatch();
                writer.end();
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
            return Arrays.copyOf(output.data, output.size);
        }
    }

    /** The values or the keys: Avro with some schemas, strings or bytes. */
    private static final class Payload {
        /** The schema id of the last valid payload; -1 if it has none, or it is not an int. */
        int id;
        private final AvroWalk walk = new AvroWalk();
        private final ArrowColumns columns;
        private final String format;
        private final int idBytes;
        private final String header;
        private final byte[] marker;
        private final int begin;
        private final GlueInflate inflate;
        private final List readings;
        private final String name;
        private final String member;
        private final Map nodes = new HashMap();
        private long lastNumber;
        private AvroNode last;

        Payload(Map given, List vectors, int longest) {
            columns = ArrowColumns.of(vectors);
            format = (String) given.get("format");
            idBytes = ((Number) given.get("id_bytes")).intValue();
            header = (String) given.get("header");
            List bytes = (List) given.get("marker");
            marker = new byte[bytes.size()];
            for (int i = 0; i < marker.length; i++) {
                marker[i] = ((Number) bytes.get(i)).byteValue();
            }
            begin = ((Number) given.get("begin")).intValue();
            boolean mayBeCompressed = ((Boolean) given.get("may_be_compressed")).booleanValue();
            inflate = mayBeCompressed ? new GlueInflate(longest) : null;
            readings = (List) given.get("readings");
            name = (String) given.get("name");
            member = (String) given.get("member");
        }

        /** Decodes a payload into the row; whether it is certainly valid. */
        boolean isGood(byte[] data, Headers headers, int row) {
            id = -1;
            if (data == null) {
                columns.none(row);
                return true;
            }
            if (!"avro".equals(format)) {
                return columns.isPlain(data, walk, row, name, "string".equals(format));
            }
            if (inflate != null) {
                data = inflate.inflated(data);
            }
            if (data.length < begin) {
                return false;
            }
            for (int i = 0; begin > 0 && i < marker.length; i++) {
                if (data[i] != marker[i]) {
                    return false;
                }
            }
            byte[] ids = data;
            if (header != null) {
                // The last of several headers with the same key counts.
                Header last = headers.lastHeader(header);
                ids = last == null ? null : last.value();
                if (ids == null || ids.length != idBytes) {
                    return false;
                }
            }
            int first = header == null ? marker.length : 0;
            long number = 0;
            for (int i = first; i < first + idBytes; i++) {
                number = number << 8 | ids[i] & 0xff;
            }
            AvroNode node = node(number);
            if (node == null) {
                return false;
            }
            try {
                if (walk.over(node, data, begin, row) != data.length) {
                    return false;
                }
            } catch (AvroWalk.Bad bad) {
                return false;
            }
            id = idBytes > 0 && number == (int) number ? (int) number : -1;
            return true;
        }

        /** The node of a schema; null for an unknown one. */
        private AvroNode node(long number) {
            if (last != null && number == lastNumber) {
                return last;
            }
            Long key = Long.valueOf(number);
            if (!nodes.containsKey(key)) {
                nodes.put(key, made(number));
            }
            lastNumber = number;
            last = (AvroNode) nodes.get(key);
            return last;
        }

        private AvroNode made(long number) {
            for (int i = 0; i < readings.size(); i++) {
                Map reading = (Map) readings.get(i);
                List ids = (List) reading.get("ids");
                for (int k = 0; k < ids.size(); k++) {
                    if (idBytes == 0 || ((Number) ids.get(k)).longValue() == number) {
                        return made(reading);
                    }
                }
            }
            return null;
        }

        private AvroNode made(Map reading) {
            String writer = (String) reading.get("writer");
            String reader = (String) reading.get("reader");
            return columns.reading(
                    new org.apache.avro.Schema.Parser().parse(writer),
                    reader == null ? null : new org.apache.avro.Schema.Parser().parse(reader),
                    name,
                    member);
        }

        void checkAll() {
            for (int i = 0; i < readings.size(); i++) {
                made((Map) readings.get(i));
            }
        }
    }

    /** A column with the same value in all rows of a batch. */
    private static final class Constant {
        private final FieldVector vector;
        private final long number;
        private final byte[] text;

        Constant(FieldVector vector, Object value) {
            this.vector = vector;
            number = value instanceof Number ? ((Number) value).longValue() : 0L;
            text = value.toString().getBytes(StandardCharsets.UTF_8);
        }

        void fill(int rows) {
            for (int row = 0; row < rows; row++) {
                if (vector instanceof VarCharVector) {
                    ((VarCharVector) vector).setSafe(row, text);
                } else if (vector instanceof TimeStampVector) {
                    ((TimeStampVector) vector).setSafe(row, number);
                } else {
                    ((BigIntVector) vector).setSafe(row, number);
                }
            }
        }
    }

    /** The output buffer of a frame. */
    private static final class Output implements WritableByteChannel {
        byte[] data = new byte[1 << 20];
        int size;

        public int write(ByteBuffer from) {
            int count = from.remaining();
            if (size + count > data.length) {
                data = Arrays.copyOf(data, Math.max(2 * data.length, size + count));
            }
            from.get(data, size, count);
            size += count;
            return count;
        }

        public boolean isOpen() {
            return true;
        }

        public void close() {
        }
    }
}
