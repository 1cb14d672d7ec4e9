package millrace;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.TimeStampVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.util.SerializableFunction;

/** The partition values of rows, by Iceberg's transforms, in columns after those of the table. */
public final class PartitionColumns {
    private static final List TIMES = Arrays.asList(new String[] {"year", "month", "day", "hour"});
    private static final long MICROS_OF_HOUR = 3600000000L;

    private final List fields = new ArrayList();

    /** Takes the partition spec, and the table's columns followed by one per partition field. */
    public PartitionColumns(PartitionSpec spec, VectorSchemaRoot root) {
        List all = root.getFieldVectors();
        int first = all.size() - spec.fields().size();
        for (int i = 0; i < spec.fields().size(); i++) {
            PartitionField field = (PartitionField) spec.fields().get(i);
            fields.add(new Field(spec, field, root, (FieldVector) all.get(first + i)));
        }
    }

    /** Fills the partition columns of a number of rows, whose other columns are complete. */
    public void fill(int rows) {
        for (int i = 0; i < fields.size(); i++) {
            Field field = (Field) fields.get(i);
            for (int row = 0; row < rows; row++) {
                field.set(row);
            }
        }
    }

    private static final class Field {
        private final List way = new ArrayList();
        private final SerializableFunction transform;
        private final FieldVector to;
        // For timestamps: all values of an hour have the same year, month, day and hour.
        private final boolean isOfHour;
        private long hour = Long.MIN_VALUE;
        private Object ofHour;

        Field(PartitionSpec spec, PartitionField field, VectorSchemaRoot root, FieldVector to) {
            String[] names = spec.schema().findColumnName(field.sourceId()).split("\\.");
            FieldVector vector = root.getVector(names[0]);
            way.add(vector);
            for (int i = 1; i < names.length; i++) {
                vector = (FieldVector) ((StructVector) vector).getChild(names[i]);
                way.add(vector);
            }
            transform = field.transform().bind(spec.schema().findType(field.sourceId()));
            isOfHour =
                    vector instanceof TimeStampVector
                            && TIMES.contains(field.transform().toString());
            this.to = to;
        }

        void set(int row) {
            Object value = transformed(row);
            if (value == null) {
                to.setNull(row);
            } else if (to instanceof DateDayVector) {
                ((DateDayVector) to).setSafe(row, ((Integer) value).intValue());
            } else if (to instanceof IntVector) {
                ((IntVector) to).setSafe(row, ((Integer) value).intValue());
            } else if (to instanceof BigIntVector) {
                ((BigIntVector) to).setSafe(row, ((Long) value).longValue());
            } else if (to instanceof TimeStampVector) {
                ((TimeStampVector) to).setSafe(row, ((Long) value).longValue());
            } else if (to instanceof BitVector) {
                ((BitVector) to).setSafe(row, ((Boolean) value).booleanValue() ? 1 : 0);
            } else if (to instanceof VarCharVector) {
                byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
                ((VarCharVector) to).setSafe(row, text);
            } else if (to instanceof VarBinaryVector) {
                ByteBuffer bytes = (ByteBuffer) value;
                ((VarBinaryVector) to).setSafe(row, bytes, bytes.position(), bytes.remaining());
            } else {
                ((DecimalVector) to).setSafe(row, (BigDecimal) value);
            }
        }

        private Object transformed(int row) {
            Object value = value(row);
            if (value == null || !isOfHour) {
                return transform.apply(value);
            }
            long its = Math.floorDiv(((Long) value).longValue(), MICROS_OF_HOUR);
            if (its != hour) {
                hour = its;
                ofHour = transform.apply(value);
            }
            return ofHour;
        }

        /** The column's value in Iceberg's representation. */
        private Object value(int row) {
            for (int i = 0; i < way.size(); i++) {
                if (((FieldVector) way.get(i)).isNull(row)) {
                    return null;
                }
            }
            FieldVector of = (FieldVector) way.get(way.size() - 1);
            if (of instanceof TimeStampVector) {
                return Long.valueOf(((TimeStampVector) of).get(row));
            }
            if (of instanceof DateDayVector) {
                return Integer.valueOf(((DateDayVector) of).get(row));
            }
            if (of instanceof VarCharVector) {
                return new String(((VarCharVector) of).get(row), StandardCharsets.UTF_8);
            }
            if (of instanceof VarBinaryVector) {
                return ByteBuffer.wrap(((VarBinaryVector) of).get(row));
            }
            return of.getObject(row);
        }
    }
}
