package millrace;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.unsafe.Platform;

/**
 * Whether bytes are exactly one value of an Avro schema, by the letter of the specification.
 *
 * <p>Avro's own decoder cuts numbers, takes any byte for a boolean and any bytes for text, and
 * Spark cuts decimals. So this walks over the bytes first, and makes nothing of them. It gives
 * null where they are good, and otherwise the reason, which names the field; where there is a
 * whole value and more behind it, the reason begins with LEFT_OVER and is its length.
 */
public final class AvroCheck implements UDF1 {
    public static final String LEFT_OVER = "+";

    private static final String ENDS_EARLY = "the bytes end early";
    // A record of a type that contains itself may be as deep as its bytes say; a stack is not.
    private static final int DEEPEST = 500;
    // Items that take no bytes are as many as their count says: a few bytes could say millions.
    private static final int MOST_EMPTY_ITEMS = 1000;

    private static final int LONGEST_PATH = 400;

    private static final int NULL = 0;
    private static final int BOOLEAN = 1;
    private static final int INT = 2;
    private static final int LONG = 3;
    private static final int SKIPPED = 4;
    private static final int BYTES = 5;
    private static final int STRING = 6;
    private static final int ENUM = 7;
    private static final int RECORD = 8;
    private static final int ARRAY = 9;
    private static final int MAP = 10;
    private static final int UNION = 11;
    private static final int DECIMAL = 12;
    private static final int MILLIS = 13;
    // The bytes that all have their highest bit clear are ASCII.
    private static final long HIGHEST_BITS = 0x8080808080808080L;
    private static final boolean FIRST_IS_LOWEST =
            ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    private static final long[] POWERS = new long[19];

    static {
        POWERS[0] = 1;
        for (int i = 1; i < POWERS.length; i++) {
            POWERS[i] = 10 * POWERS[i - 1];
        }
    }

    private final String schema;
    private final int begin;
    private transient Node root;

    /**
     * Binds the check to a schema.
     *
     * @param schema JSON of the schema that wrote the values, complete in itself.
     * @param begin  Bytes of framing before each value.
     */
    public AvroCheck(String schema, int begin) {
        this.schema = schema;
        this.begin = begin;
    }

    /** Null where the bytes are exactly one value; otherwise the reason. */
    public Object call(Object value) {
        if (value == null) {
            return null;
        }
        if (root == null) {
            root = node(new Schema.Parser().parse(schema), new HashMap());
        }
        byte[] data = (byte[]) value;
        int end;
        try {
            end = new Walk(data).over(root, begin);
        } catch (ArrayIndexOutOfBoundsException early) {
            return ENDS_EARLY;
        } catch (Bad bad) {
            return bad.reason();
        }
        return end == data.length ? null : LEFT_OVER + end;
    }

    private static Node node(Schema of, Map known) {
        if (known.containsKey(of.getType() == Schema.Type.RECORD ? of.getFullName() : "")) {
            return (Node) known.get(of.getFullName());
        }
        Node made = new Node();
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
            made.parts = new Node[fields.size()];
            made.names = new String[fields.size()];
            for (int i = 0; i < fields.size(); i++) {
                Schema.Field field = (Schema.Field) fields.get(i);
                made.parts[i] = node(field.schema(), known);
                made.names[i] = field.name();
            }
        } else if (type == Schema.Type.UNION) {
            made.kind = UNION;
            List branches = of.getTypes();
            made.parts = new Node[branches.size()];
            for (int i = 0; i < branches.size(); i++) {
                made.parts[i] = node((Schema) branches.get(i), known);
            }
        } else if (type == Schema.Type.ARRAY) {
            made.kind = ARRAY;
            made.item = node(of.getElementType(), known);
        } else if (type == Schema.Type.MAP) {
            made.kind = MAP;
            made.item = node(of.getValueType(), known);
        } else if (type == Schema.Type.ENUM) {
            made.kind = ENUM;
            made.size = of.getEnumSymbols().size();
        } else if (type == Schema.Type.FIXED) {
            made.kind = SKIPPED;
            made.size = of.getFixedSize();
        } else if (type == Schema.Type.FLOAT || type == Schema.Type.DOUBLE) {
            made.kind = SKIPPED;
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

    private static final class Node {
        int kind;
        int size;
        int precision;
        int scale;
        BigInteger limit;
        Node item;
        Node[] parts;
        String[] names;
    }

    /** What is wrong, and where: places are added on the way out. */
    private static final class Bad extends RuntimeException {
        private final String what;
        private final StringBuilder path = new StringBuilder();

        Bad(String what) {
            super(what, null, false, false);
            this.what = what;
        }

        Bad in(String place) {
            boolean joined = path.length() == 0 || path.charAt(0) == '[' || path.charAt(0) == '{';
            path.insert(0, joined ? place : place + ".");
            return this;
        }

        String reason() {
            if (path.length() > LONGEST_PATH) {
                path.replace(LONGEST_PATH / 2, path.length() - LONGEST_PATH / 2, " ... ");
            }
            return path.length() == 0 ? what : path + ": " + what;
        }
    }

    /** The way over one value's bytes: each step takes where it begins, and gives where it ends. */
    private static final class Walk {
        private final byte[] data;
        private int depth = -1;
        private int emptyItems;

        Walk(byte[] data) {
            this.data = data;
        }

        int over(Node node, int at) {
            if (node.kind == UNION) {
                // No union is a branch of another.
                int index = index("union", node.parts.length, at);
                at = data[at] >= 0 ? at + 1 : behindNumber(at);
                node = node.parts[index];
            }
            switch (node.kind) {
                case NULL:
                    return at;
                case BOOLEAN:
                    if ((data[at] & 0xfe) != 0) {
                        throw new Bad("boolean byte " + (data[at] & 0xff));
                    }
                    return at + 1;
                case INT:
                    return data[at] >= 0 ? at + 1 : longInt(at);
                case LONG:
                    return behindNumber(at);
                case SKIPPED:
                    return behind(at, node.size);
                case BYTES:
                    return behindChunk(at);
                case STRING:
                    return text(at);
                case ENUM:
                    index("enum", node.size, at);
                    return behindNumber(at);
                case RECORD:
                    return record(node, at);
                case ARRAY:
                case MAP:
                    return blocks(node, at);
                case DECIMAL:
                    int end = node.size < 0 ? behindChunk(at) : behind(at, node.size);
                    decimal(node, node.size < 0 ? behindNumber(at) : at, end);
                    return end;
                default:
                    return millis(at);
            }
        }

        private int record(Node node, int at) {
            if (++depth > DEEPEST) {
                throw new Bad("more than " + DEEPEST + " records deep");
            }
            Node[] parts = node.parts;
            int field = 0;
            try {
                for (; field < parts.length; field++) {
                    at = over(parts[field], at);
                }
            } catch (ArrayIndexOutOfBoundsException early) {
                throw new Bad(ENDS_EARLY).in(node.names[field]);
            } catch (Bad bad) {
                throw bad.in(node.names[field]);
            }
            depth--;
            return at;
        }

        private int blocks(Node node, int at) {
            boolean isMap = node.kind == MAP;
            Set keys = isMap ? new HashSet() : null;
            try {
                while (true) {
                    long count = number(at);
                    at = behindNumber(at);
                    if (count == 0) {
                        return at;
                    }
                    long end = -1;
                    if (count < 0) {
                        count = -count;
                        long size = number(at);
                        at = behindNumber(at);
                        if (size < 0 || size > data.length - at) {
                            throw new Bad("a block of " + size + " bytes");
                        }
                        end = at + size;
                    }
                    for (long i = 0; i != count; i++) {
                        at = item(node, keys, at);
                    }
                    if (end >= 0 && at != end) {
                        throw new Bad("a block that is not as long as it says");
                    }
                }
            } catch (ArrayIndexOutOfBoundsException early) {
                throw new Bad(ENDS_EARLY).in(isMap ? "{}" : "[]");
            } catch (Bad bad) {
                throw bad.in(isMap ? "{}" : "[]");
            }
        }

        private int item(Node node, Set keys, int at) {
            int from = at;
            if (keys != null) {
                int key = behindNumber(at);
                from = text(at);
                // Of keys with one hash Java's sets sort those that it can compare. It cannot
                // compare buffers, and would look through all.
                if (!keys.add(new String(data, key, from - key, StandardCharsets.ISO_8859_1))) {
                    throw new Bad("a key that is there twice");
                }
            }
            int end = over(node.item, from);
            if (end == at && ++emptyItems > MOST_EMPTY_ITEMS) {
                throw new Bad("more than " + MOST_EMPTY_ITEMS + " items without a byte");
            }
            return end;
        }

        /** Behind a number of up to 64 bits, in as many as ten bytes. */
        private int behindNumber(int at) {
            if (data[at] >= 0) {
                return at + 1;
            }
            if (FIRST_IS_LOWEST && at + 8 <= data.length) {
                long last = ~word(at) & HIGHEST_BITS;
                if (last != 0) {
                    return at + 1 + (Long.numberOfTrailingZeros(last) >>> 3);
                }
            }
            int end = at;
            while (data[end] < 0) {
                end++;
            }
            int bytes = end - at + 1;
            if (bytes >= 10) {
                if (bytes > 10) {
                    throw new Bad("a number of more than ten bytes");
                }
                if (data[end] > 1) {
                    throw new Bad("a number wider than a long");
                }
            }
            return end + 1;
        }

        private long number(int at) {
            int end = behindNumber(at);
            long bits = 0;
            for (int i = at, shift = 0; i < end; i++, shift += 7) {
                bits |= (data[i] & 0x7fL) << shift;
            }
            return bits >>> 1 ^ -(bits & 1);
        }

        /** Behind a number of up to 32 bits, in as many as five bytes. */
        private int longInt(int at) {
            int end = behindNumber(at);
            int bytes = end - at;
            if (bytes == 5 && (data[end - 1] & 0xf0) != 0) {
                throw new Bad(number(at) + " is wider than an int");
            }
            if (bytes > 5) {
                throw new Bad("an int of more than five bytes");
            }
            return end;
        }

        private int index(String what, int size, int at) {
            int first = data[at];
            if (first >= 0 && (first & 1) == 0 && first >>> 1 < size) {
                return first >>> 1;
            }
            longInt(at);
            long index = number(at);
            if (index < 0 || index >= size) {
                throw new Bad(what + " index " + index + " of " + size);
            }
            return (int) index;
        }

        private int millis(int at) {
            int end = behindNumber(at);
            // Fewer bytes hold no number of that size.
            if (end - at > 7) {
                long number = number(at);
                if (number > Long.MAX_VALUE / 1000 || number < Long.MIN_VALUE / 1000) {
                    throw new Bad(number + " milliseconds are more than a timestamp holds");
                }
            }
            return end;
        }

        private int behindChunk(int at) {
            int size = data[at];
            if (size >= 0 && (size & 1) == 0) {
                return behind(at + 1, size >>> 1);
            }
            long wide = number(at);
            if (wide < 0) {
                throw new Bad("a length of " + wide);
            }
            return behind(behindNumber(at), wide);
        }

        private int behind(int at, long size) {
            if (size > data.length - at) {
                throw new Bad(ENDS_EARLY);
            }
            return at + (int) size;
        }

        private int text(int at) {
            int end = behindChunk(at);
            int here = data[at] >= 0 ? at + 1 : behindNumber(at);
            while (here + 8 <= end && (word(here) & HIGHEST_BITS) == 0) {
                here += 8;
            }
            int left = end - here;
            if (FIRST_IS_LOWEST && left > 0 && left < 8 && here + 8 <= data.length) {
                // What is behind the text does not count.
                if ((word(here) & HIGHEST_BITS >>> 8 * (8 - left)) == 0) {
                    return end;
                }
            }
            while (here < end) {
                int length = data[here] >= 0 ? 1 : encoded(here, end);
                if (length == 0) {
                    throw new Bad("not UTF-8");
                }
                here += length;
            }
            return end;
        }

        private long word(int at) {
            return Platform.getLong(data, Platform.BYTE_ARRAY_OFFSET + at);
        }

        /** Bytes of the character here, by the Unicode standard's table 3-7; 0 where it is none. */
        private int encoded(int here, int end) {
            int first = data[here] & 0xff;
            int second = here + 1 < end ? data[here + 1] & 0xff : 0;
            if (first < 0xe0) {
                return first >= 0xc2 && second >> 6 == 2 ? 2 : 0;
            }
            int least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
            int most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
            if (first > 0xf4 || second < least || second > most || !goesOn(here + 2, end)) {
                return 0;
            }
            if (first < 0xf0) {
                return 3;
            }
            return goesOn(here + 3, end) ? 4 : 0;
        }

        private boolean goesOn(int here, int end) {
            return here < end && (data[here] & 0xc0) == 0x80;
        }

        private void decimal(Node node, int at, int end) {
            int size = end - at;
            if (size == 0) {
                throw new Bad("a decimal without a byte");
            }
            if (size <= 8) {
                long number = data[at];
                for (int i = at + 1; i < end; i++) {
                    number = number << 8 | data[i] & 0xff;
                }
                if (node.precision > 18) {
                    return;
                }
                long most = POWERS[node.precision];
                if (number < most && number > -most) {
                    return;
                }
            }
            byte[] bytes = new byte[size];
            System.arraycopy(data, at, bytes, 0, size);
            BigInteger number = new BigInteger(bytes);
            if (number.abs().compareTo(node.limit) >= 0) {
                // A number of megabytes would take minutes to write out.
                String told =
                        size > 64
                                ? "a number of " + size + " bytes"
                                : new BigDecimal(number, node.scale).toPlainString();
                throw new Bad(told + " has more than " + node.precision + " digits");
            }
        }
    }
}
