package millrace;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;

/** A node of an Avro schema for AvroWalk, and the target of its values. */
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
    /** The target of the value; null if there is none. */
    public Target target;
    /** The target of a map's keys. */
    public Target keys;
    /** The columns of a record's target that the record does not have. */
    public Target[] absent = new Target[0];

    /** The node of a self-contained schema, without targets. */
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

    /** Whether a type is a decimal: with invalid parameters the logical type is ignored. */
    private static boolean isDecimal(Schema of, Schema.Type type, String logical) {
        boolean mayBe = type == Schema.Type.BYTES || type == Schema.Type.FIXED;
        return mayBe && "decimal".equals(logical) && of.getLogicalType() != null;
    }

    /** Receives the values of a node; the node's kind determines which method is called. */
    public abstract static class Target {
        /** Null. */
        public abstract void none(int row);

        /** A boolean, an int, a long, or the index of an enum's symbol. */
        public void number(int row, long value) {
            throw new IllegalStateException();
        }

        /** A string, bytes, a decimal's unscaled value, or bytes of a fixed, float or double. */
        public void bytes(int row, byte[] data, int from, int size) {
            throw new IllegalStateException();
        }

        /** The start of a record, with its fields in the same row; else the first item's row. */
        public int begin(int row) {
            throw new IllegalStateException();
        }

        /** The start of a map's entry. */
        public void item(int row) {
        }

        /** The end of an array or map in the row, with its number of items. */
        public void end(int row, int count) {
        }
    }
}
