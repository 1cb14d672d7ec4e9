package millrace;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;

/** A part of an Avro schema, as AvroWalk goes over its values, and what takes them. */
public final class AvroNode {
    public static final int NULL = 0;
    public static final int BOOLEAN = 1;
    public static final int INT = 2;
    public static final int LONG = 3;
    public static final int FIXED = 4;
    public static final int BYTES = 5;
    public static final int STRING = 6;
    public static final int ENUM = 7;
    public static final int RECORD = 8;
    public static final int ARRAY = 9;
    public static final int MAP = 10;
    public static final int UNION = 11;
    public static final int DECIMAL = 12;
    public static final int MILLIS = 13;

    public int kind;
    public int size;
    public int precision;
    public int scale;
    public BigInteger limit;
    public AvroNode item;
    public AvroNode[] parts;
    public String[] names;
    /** Takes it; null where nothing does. */
    public Target target;
    /** Takes a map's keys. */
    public Target keys;
    /** Of a record: what its target has and it has not. */
    public Target[] absent = new Target[0];

    /** What the bytes of a schema are, with no targets; the schema is complete in itself. */
    public static AvroNode of(Schema schema) {
        return of(schema, new HashMap());
    }

    private static AvroNode of(Schema of, Map known) {
        if (known.containsKey(of.getType() == Schema.Type.RECORD ? of.getFullName() : "")) {
            return (AvroNode) known.get(of.getFullName());
        }
        AvroNode made = new AvroNode();
        Schema.Type type = of.getType();
        String logical = of.getProp("logicalType");
        if (isDecimal(of, type, logical)) {
            made.kind = DECIMAL;
            made.size = type == Schema.Type.FIXED ? of.getFixedSize() : -1;
            made.precision = ((Number) of.getObjectProp("precision")).intValue();
            Object scale = of.getObjectProp("scale");
            made.scale = scale == null ? 0 : ((Number) scale).intValue();
            made.limit = BigInteger.TEN.pow(made.precision);
        } else if (type == Schema.Type.RECORD) {
            known.put(of.getFullName(), made);
            made.kind = RECORD;
            List fields = of.getFields();
            made.parts = new AvroNode[fields.size()];
            made.names = new String[fields.size()];
            for (int i = 0; i < fields.size(); i++) {
                Schema.Field field = (Schema.Field) fields.get(i);
                made.parts[i] = of(field.schema(), known);
                made.names[i] = field.name();
            }
        } else if (type == Schema.Type.UNION) {
            made.kind = UNION;
            List branches = of.getTypes();
            made.parts = new AvroNode[branches.size()];
            for (int i = 0; i < branches.size(); i++) {
                made.parts[i] = of((Schema) branches.get(i), known);
            }
        } else if (type == Schema.Type.ARRAY) {
            made.kind = ARRAY;
            made.item = of(of.getElementType(), known);
        } else if (type == Schema.Type.MAP) {
            made.kind = MAP;
            made.item = of(of.getValueType(), known);
        } else if (type == Schema.Type.ENUM) {
            made.kind = ENUM;
            made.size = of.getEnumSymbols().size();
        } else if (type == Schema.Type.FIXED) {
            made.kind = FIXED;
            made.size = of.getFixedSize();
        } else if (type == Schema.Type.FLOAT || type == Schema.Type.DOUBLE) {
            made.kind = FIXED;
            made.size = type == Schema.Type.FLOAT ? 4 : 8;
        } else if (type == Schema.Type.LONG) {
            boolean millis =
                    "timestamp-millis".equals(logical) || "local-timestamp-millis".equals(logical);
            made.kind = millis ? MILLIS : LONG;
        } else if (type == Schema.Type.INT) {
            made.kind = INT;
        } else if (type == Schema.Type.BYTES) {
            made.kind = BYTES;
        } else if (type == Schema.Type.STRING) {
            made.kind = STRING;
        } else {
            made.kind = type == Schema.Type.BOOLEAN ? BOOLEAN : NULL;
        }
        return made;
    }

    /** Whether a column is a decimal: parameters that make no sense leave the plain bytes. */
    private static boolean isDecimal(Schema of, Schema.Type type, String logical) {
        boolean mayBe = type == Schema.Type.BYTES || type == Schema.Type.FIXED;
        return mayBe && "decimal".equals(logical) && of.getLogicalType() != null;
    }

    /** Takes what stands where a part of a schema is; which of these is called its kind says. */
    public abstract static class Target {
        /** Null. */
        public abstract void none(int row);

        /** A boolean, an int, a long, or the index of an enum's symbol. */
        public void number(int row, long value) {
            throw new IllegalStateException();
        }

        /** Text, bytes, a decimal's digits, or a fixed's, a float's and a double's bytes. */
        public void bytes(int row, byte[] data, int from, int size) {
            throw new IllegalStateException();
        }

        /** A record begins, whose fields are in the same row; of others, the row of the first item. */
        public int begin(int row) {
            throw new IllegalStateException();
        }

        /** An item of a map begins. */
        public void item(int row) {
        }

        /** So many items were in that row. */
        public void end(int row, int count) {
        }
    }
}
