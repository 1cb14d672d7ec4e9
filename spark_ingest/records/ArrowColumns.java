package millrace;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.TimeStampVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.avro.Schema;

/**
 * Columns of a table, or the fields of a struct, as Arrow vectors: the target of an Avro record.
 * Every value is written, including nulls, because the next record overwrites the row of a record
 * that turns out to be bad.
 */
public final class ArrowColumns extends AvroNode.Target {
    private static final int LONGEST_TEXT = limit("string.maxLength");
    private static final int LONGEST_BYTES = limit("bytes.maxLength");
    private static final int MOST_ITEMS = limit("collectionItems.maxLength");

    private final StructVector struct;
    private final Map children = new LinkedHashMap();

    /** Takes the vectors; the struct is null for a table's columns. */
    private ArrowColumns(StructVector struct, List vectors) {
        this.struct = struct;
        for (int i = 0; i < vectors.size(); i++) {
            FieldVector vector = (FieldVector) vectors.get(i);
            children.put(vector.getName(), vector);
        }
    }

    /** Columns of a table. */
    public static ArrowColumns of(List vectors) {
        return new ArrowColumns(null, vectors);
    }

    public int begin(int row) {
        if (struct != null) {
            struct.setIndexDefined(row);
        }
        return row;
    }

    public void none(int row) {
        if (struct != null) {
            struct.setNull(row);
            return;
        }
        Iterator each = children.values().iterator();
        while (each.hasNext()) {
            ((FieldVector) each.next()).setNull(row);
        }
    }

    /**
     * The node that reads a value into these columns, or into the named one.
     *
     * @param writer The writer schema.
     * @param reader The reader schema; null if the value has no column.
     * @param name   The column of a value that is not a record; null if its fields are columns.
     * @param member The member of that column for the value; null if the column is the value.
     */
    public AvroNode reading(Schema writer, Schema reader, String name, String member) {
        if (reader == null) {
            return silent(writer, this);
        }
        if (name == null) {
            return bound(writer, reader, null, this, null);
        }
        FieldVector vector = (FieldVector) children.get(name);
        AvroNode only = bound(writer, reader, vector, null, member);
        return record(this, new AvroNode[] {only}, new String[] {name});
    }

    /** Writes bytes unchanged to the named column; false if they must be UTF-8 and are not. */
    public boolean isPlain(byte[] data, AvroWalk walk, int row, String name, boolean isText) {
        if (isText && !walk.isText(data, 0, data.length)) {
            return false;
        }
        none(row);
        ((BaseVariableWidthVector) children.get(name)).setSafe(row, data, 0, data.length);
        return true;
    }

    /** A node for a value without a column, whose record has null in all columns. */
    private static AvroNode silent(Schema writer, ArrowColumns columns) {
        return record(columns, new AvroNode[] {AvroNode.of(writer)}, new String[] {""});
    }

    private static AvroNode bound(Schema writer, Schema reader, FieldVector to) {
        return bound(writer, reader, to, null, null);
    }

    /** The node of a type for a vector, for all columns, or for the one member of a vector. */
    private static AvroNode bound(
            Schema writer, Schema reader, FieldVector to, ArrowColumns all, String lone) {
        if (writer.getType() == Schema.Type.UNION) {
            AvroNode made = new AvroNode();
            made.kind = AvroNode.UNION;
            List branches = writer.getTypes();
            made.parts = new AvroNode[branches.size()];
            for (int i = 0; i < made.parts.length; i++) {
                made.parts[i] = bound((Schema) branches.get(i), reader, to, all, lone);
            }
            return made;
        }
        if (writer.getType() == Schema.Type.NULL) {
            AvroNode made = AvroNode.of(writer);
            made.target = all == null ? target(to, made, writer) : all;
            return made;
        }
        if (lone != null) {
            return in(to, lone, writer, reader);
        }
        List types = types(reader);
        if (types.size() > 1) {
            Schema member = member(writer, types);
            return in(to, member.getName().toLowerCase(), writer, member);
        }
        Schema read = (Schema) types.get(0);
        if (writer.getType() == Schema.Type.RECORD) {
            return fields(writer, read, all == null ? columns(to) : all);
        }
        AvroNode made;
        if (writer.getType() == Schema.Type.ARRAY) {
            made = new AvroNode();
            made.kind = AvroNode.ARRAY;
            FieldVector items = ((ListVector) to).getDataVector();
            made.item = bound(writer.getElementType(), read.getElementType(), items);
        } else if (writer.getType() == Schema.Type.MAP) {
            made = new AvroNode();
            made.kind = AvroNode.MAP;
            StructVector entries = (StructVector) ((MapVector) to).getDataVector();
            made.keys = new Bytes((VarCharVector) entries.getChild(MapVector.KEY_NAME));
            FieldVector values = (FieldVector) entries.getChild(MapVector.VALUE_NAME);
            made.item = bound(writer.getValueType(), read.getValueType(), values);
        } else {
            made = AvroNode.of(writer);
        }
        made.target = target(to, made, writer);
        return made;
    }

    /** A value that is a member of a struct: the others are null. */
    private static AvroNode in(FieldVector to, String member, Schema writer, Schema reader) {
        ArrowColumns members = columns(to);
        FieldVector vector = (FieldVector) members.children.get(member);
        AvroNode only = bound(writer, reader, vector);
        return record(members, new AvroNode[] {only}, new String[] {member});
    }

    private static AvroNode fields(Schema writer, Schema reader, ArrowColumns to) {
        List fields = writer.getFields();
        AvroNode[] parts = new AvroNode[fields.size()];
        String[] names = new String[parts.length];
        for (int i = 0; i < parts.length; i++) {
            Schema.Field field = (Schema.Field) fields.get(i);
            Schema.Field read = reader.getField(field.name());
            names[i] = field.name();
            if (read == null) {
                // Null in all versions: there is no column.
                parts[i] = AvroNode.of(field.schema());
            } else {
                FieldVector vector = (FieldVector) to.children.get(field.name());
                parts[i] = bound(field.schema(), read.schema(), vector);
            }
        }
        return record(to, parts, names);
    }

    private static AvroNode record(ArrowColumns to, AvroNode[] parts, String[] names) {
        AvroNode made = new AvroNode();
        made.kind = AvroNode.RECORD;
        made.parts = parts;
        made.names = names;
        made.target = to;
        Map others = new LinkedHashMap(to.children);
        for (int i = 0; i < names.length; i++) {
            others.remove(names[i]);
        }
        made.absent = new AvroNode.Target[others.size()];
        Iterator each = others.values().iterator();
        for (int i = 0; i < made.absent.length; i++) {
            made.absent[i] = new Null((FieldVector) each.next());
        }
        return made;
    }

    private static ArrowColumns columns(FieldVector struct) {
        return new ArrowColumns((StructVector) struct, struct.getChildrenFromFields());
    }

    /** The non-null types of a schema. */
    private static List types(Schema schema) {
        List types = new ArrayList();
        if (schema.getType() != Schema.Type.UNION) {
            types.add(schema);
            return types;
        }
        List branches = schema.getTypes();
        for (int i = 0; i < branches.size(); i++) {
            if (((Schema) branches.get(i)).getType() != Schema.Type.NULL) {
                types.add(branches.get(i));
            }
        }
        return types;
    }

    /** The branch of a union for a type: for a number the widest. */
    private static Schema member(Schema writer, List types) {
        Schema.Type[] wider = {writer.getType(), null};
        if (writer.getType() == Schema.Type.INT) {
            wider[1] = Schema.Type.LONG;
        } else if (writer.getType() == Schema.Type.FLOAT) {
            wider[1] = Schema.Type.DOUBLE;
        }
        for (int w = 0; w < wider.length; w++) {
            for (int i = 0; i < types.size(); i++) {
                Schema type = (Schema) types.get(i);
                if (type.getType() == wider[w] && (!isNamed(type) || isSame(type, writer))) {
                    return type;
                }
            }
        }
        throw new UnsupportedOperationException(writer + " in a union of " + types);
    }

    private static boolean isNamed(Schema type) {
        return type.getType() == Schema.Type.RECORD
                || type.getType() == Schema.Type.ENUM
                || type.getType() == Schema.Type.FIXED;
    }

    private static boolean isSame(Schema type, Schema writer) {
        return type.getFullName().equals(writer.getFullName());
    }

    /** The target of a vector for a null, or for a value that is not a record. */
    private static AvroNode.Target target(FieldVector to, AvroNode node, Schema writer) {
        if (node.kind == AvroNode.NULL) {
            return new Null(to);
        }
        if (to instanceof ListVector) {
            return new Items((ListVector) to);
        }
        if (node.kind == AvroNode.ENUM && to instanceof VarCharVector) {
            return new Symbols((VarCharVector) to, writer.getEnumSymbols());
        }
        if (to instanceof BaseVariableWidthVector) {
            return new Bytes((BaseVariableWidthVector) to);
        }
        if (to instanceof DecimalVector) {
            DecimalVector decimal = (DecimalVector) to;
            if (decimal.getScale() == node.scale && decimal.getPrecision() >= node.precision) {
                return new Decimal(decimal);
            }
        } else if (to instanceof Float4Vector || to instanceof Float8Vector) {
            return new Real(to, node.size);
        } else if (to instanceof TimeStampVector) {
            return new Timestamp((TimeStampVector) to, node.kind == AvroNode.MILLIS ? 1000 : 1);
        } else if (to instanceof BigIntVector) {
            return new Long64((BigIntVector) to);
        } else if (to instanceof IntVector || to instanceof DateDayVector) {
            return new Int32(to);
        } else if (to instanceof BitVector) {
            return new Bit((BitVector) to);
        }
        throw new UnsupportedOperationException(writer + " as " + to.getField());
    }

    private static int limit(String name) {
        String set = System.getProperty("org.apache.avro.limits." + name);
        return set == null ? Integer.MAX_VALUE : Integer.parseInt(set.trim());
    }

    private static void check(int size, int most) {
        if (size > most) {
            throw new AvroWalk.Bad("more than the limit of Avro's decoder");
        }
    }

    private static class Null extends AvroNode.Target {
        final FieldVector vector;

        Null(FieldVector vector) {
            this.vector = vector;
        }

        public void none(int row) {
            vector.setNull(row);
        }
    }

    private static final class Items extends Null {
        private final ListVector list;
        private final StructVector entries;

        Items(ListVector list) {
            super(list);
            this.list = list;
            entries = list instanceof MapVector ? (StructVector) list.getDataVector() : null;
        }

        public int begin(int row) {
            return list.startNewValue(row);
        }

        public void item(int row) {
            entries.setIndexDefined(row);
        }

        public void end(int row, int count) {
            check(count, MOST_ITEMS);
            list.endValue(row, count);
        }
    }

    private static final class Bytes extends Null {
        private final BaseVariableWidthVector bytes;
        private final int longest;

        Bytes(BaseVariableWidthVector bytes) {
            super(bytes);
            this.bytes = bytes;
            longest = bytes instanceof VarCharVector ? LONGEST_TEXT : LONGEST_BYTES;
        }

        public void bytes(int row, byte[] data, int from, int size) {
            check(size, longest);
            bytes.setSafe(row, data, from, size);
        }
    }

    private static final class Symbols extends Null {
        private final VarCharVector text;
        private final byte[][] symbols;

        Symbols(VarCharVector text, List symbols) {
            super(text);
            this.text = text;
            this.symbols = new byte[symbols.size()][];
            for (int i = 0; i < this.symbols.length; i++) {
                this.symbols[i] = ((String) symbols.get(i)).getBytes(StandardCharsets.UTF_8);
            }
        }

        public void number(int row, long index) {
            text.setSafe(row, symbols[(int) index]);
        }
    }

    private static final class Decimal extends Null {
        private final DecimalVector decimal;

        Decimal(DecimalVector decimal) {
            super(decimal);
            this.decimal = decimal;
        }

        public void bytes(int row, byte[] data, int from, int size) {
            check(size, LONGEST_BYTES);
            if (size <= 8) {
                long value = data[from];
                for (int i = 1; i < size; i++) {
                    value = value << 8 | data[from + i] & 0xff;
                }
                decimal.setSafe(row, value);
                return;
            }
            byte[] digits = new byte[size];
            System.arraycopy(data, from, digits, 0, size);
            // Without redundant sign bytes: the vector accepts at most sixteen.
            decimal.setBigEndianSafe(row, new BigInteger(digits).toByteArray());
        }
    }

    private static final class Real extends Null {
        private final int size;

        Real(FieldVector vector, int size) {
            super(vector);
            this.size = size;
        }

        public void bytes(int row, byte[] data, int from, int length) {
            long bits = 0;
            for (int i = size - 1; i >= 0; i--) {
                bits = bits << 8 | data[from + i] & 0xff;
            }
            if (vector instanceof Float4Vector) {
                ((Float4Vector) vector).setSafe(row, Float.intBitsToFloat((int) bits));
            } else {
                double value =
                        size == 4
                                ? Float.intBitsToFloat((int) bits)
                                : Double.longBitsToDouble(bits);
                ((Float8Vector) vector).setSafe(row, value);
            }
        }
    }

    private static final class Timestamp extends Null {
        private final TimeStampVector time;
        private final long unit;

        Timestamp(TimeStampVector time, long unit) {
            super(time);
            this.time = time;
            this.unit = unit;
        }

        public void number(int row, long value) {
            time.setSafe(row, value * unit);
        }
    }

    private static final class Long64 extends Null {
        private final BigIntVector number;

        Long64(BigIntVector number) {
            super(number);
            this.number = number;
        }

        public void number(int row, long value) {
            number.setSafe(row, value);
        }
    }

    private static final class Int32 extends Null {
        Int32(FieldVector vector) {
            super(vector);
        }

        public void number(int row, long value) {
            if (vector instanceof IntVector) {
                ((IntVector) vector).setSafe(row, (int) value);
            } else {
                ((DateDayVector) vector).setSafe(row, (int) value);
            }
        }
    }

    private static final class Bit extends Null {
        private final BitVector bit;

        Bit(BitVector bit) {
            super(bit);
            this.bit = bit;
        }

        public void number(int row, long value) {
            bit.setSafe(row, (int) value);
        }
    }
}
