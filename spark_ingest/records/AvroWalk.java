package millrace;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.unsafe.Platform;

/**
 * Walks over the bytes of an Avro value, strictly by the specification.
 *
 * <p>Avro's own decoder truncates numbers and accepts any byte as a boolean and any bytes as a
 * string, and Spark truncates decimals. A walk rejects bytes that do not match the schema exactly,
 * with a reason that names the field. It creates no objects: each node of the schema may have a
 * target, which receives the values.
 */
public final class AvroWalk {
    private static final String ENDS_EARLY = "the bytes end early";
    // The depth of recursive records, which the bytes determine, is limited by the stack.
    private static final int DEEPEST = 500;
    // A few bytes can declare millions of items without bytes.
    private static final int MOST_EMPTY_ITEMS = 1000;

    private static final int LONGEST_PATH = 400;

    // Bytes whose highest bits are all clear are ASCII.
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

    private byte[] data;
    private int depth;
    private int emptyItems;

    /**
     * Walks over one value.
     *
     * @param root  The schema.
     * @param bytes The bytes with the value.
     * @param at    The offset of the value.
     * @param row   The row of the targets for the value.
     * @return The offset after the value.
     * @throws Bad The bytes do not match the schema.
     */
    public int over(AvroNode root, byte[] bytes, int at, int row) {
        data = bytes;
        depth = -1;
        emptyItems = 0;
        try {
            return over(root, at, row);
        } catch (ArrayIndexOutOfBoundsException early) {
            throw new Bad(ENDS_EARLY);
        }
    }

    /** Whether a range of bytes is UTF-8. */
    public boolean isText(byte[] bytes, int from, int end) {
        data = bytes;
        return isText(from, end);
    }

    /** The reason and the path, which is extended while the exception propagates. */
    public static final class Bad extends RuntimeException {
        private final String what;
        private final StringBuilder path = new StringBuilder();

        public Bad(String what) {
            super(what, null, false, false);
            this.what = what;
        }

        Bad in(String place) {
            boolean joined = path.length() == 0 || path.charAt(0) == '[' || path.charAt(0) == '{';
            path.insert(0, joined ? place : place + ".");
            return this;
        }

        public String reason() {
            if (path.length() > LONGEST_PATH) {
                path.replace(LONGEST_PATH / 2, path.length() - LONGEST_PATH / 2, " ... ");
            }
            return path.length() == 0 ? what : path + ": " + what;
        }
    }

    private int over(AvroNode node, int at, int row) {
        if (node.kind == AvroNode.UNION) {
            // No union is a branch of another.
            int index = index("union", node.parts.length, at);
            at = data[at] >= 0 ? at + 1 : behindNumber(at);
            node = node.parts[index];
        }
        AvroNode.Target target = node.target;
        int end;
        switch (node.kind) {
            case AvroNode.NULL:
                if (target != null) {
                    target.none(row);
                }
                return at;
            case AvroNode.BOOLEAN:
                if ((data[at] & 0xfe) != 0) {
                    throw new Bad("boolean byte " + (data[at] & 0xff));
                }
                end = at + 1;
                break;
            case AvroNode.INT:
                end = data[at] >= 0 ? at + 1 : longInt(at);
                break;
            case AvroNode.LONG:
                end = behindNumber(at);
                break;
            case AvroNode.FIXED:
                end = behind(at, node.size);
                if (target != null) {
                    target.bytes(row, data, at, node.size);
                }
                return end;
            case AvroNode.BYTES:
                end = behindChunk(at);
                if (target != null) {
                    int from = behindNumber(at);
                    target.bytes(row, data, from, end - from);
                }
                return end;
            case AvroNode.STRING:
                end = behindChunk(at);
                int text = behindNumber(at);
                if (!isText(text, end)) {
                    throw new Bad("not UTF-8");
                }
                if (target != null) {
                    target.bytes(row, data, text, end - text);
                }
                return end;
            case AvroNode.ENUM:
                int symbol = index("enum", node.size, at);
                if (target != null) {
                    target.number(row, symbol);
                }
                return behindNumber(at);
            case AvroNode.RECORD:
                return record(node, at, row);
            case AvroNode.ARRAY:
            case AvroNode.MAP:
                return blocks(node, at, row);
            case AvroNode.DECIMAL:
                end = node.size < 0 ? behindChunk(at) : behind(at, node.size);
                int digits = node.size < 0 ? behindNumber(at) : at;
                decimal(node, digits, end);
                if (target != null) {
                    target.bytes(row, data, digits, end - digits);
                }
                return end;
            default:
                end = millis(at);
        }
        if (target != null) {
            target.number(row, node.kind == AvroNode.BOOLEAN ? (long) data[at] : number(at, end));
        }
        return end;
    }

    private int record(AvroNode node, int at, int row) {
        if (++depth > DEEPEST) {
            throw new Bad("more than " + DEEPEST + " records deep");
        }
        if (node.target != null) {
            node.target.begin(row);
        }
        for (int i = 0; i < node.absent.length; i++) {
            node.absent[i].none(row);
        }
        AvroNode[] parts = node.parts;
        int field = 0;
        try {
            for (; field < parts.length; field++) {
                at = over(parts[field], at, row);
            }
        } catch (ArrayIndexOutOfBoundsException early) {
            throw new Bad(ENDS_EARLY).in(node.names[field]);
        } catch (Bad bad) {
            throw bad.in(node.names[field]);
        }
        depth--;
        return at;
    }

    private int blocks(AvroNode node, int at, int row) {
        boolean isMap = node.kind == AvroNode.MAP;
        int first = node.target == null ? 0 : node.target.begin(row);
        int items = 0;
        Set keys = isMap ? new HashSet() : null;
        try {
            while (true) {
                long count = number(at);
                at = behindNumber(at);
                if (count == 0) {
                    if (node.target != null) {
                        node.target.end(row, items);
                    }
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
                    at = item(node, keys, at, first + items++);
                }
                if (end >= 0 && at != end) {
                    throw new Bad("a block whose declared size is wrong");
                }
            }
        } catch (ArrayIndexOutOfBoundsException early) {
            throw new Bad(ENDS_EARLY).in(isMap ? "{}" : "[]");
        } catch (Bad bad) {
            throw bad.in(isMap ? "{}" : "[]");
        }
    }

    private int item(AvroNode node, Set keys, int at, int row) {
        int from = at;
        if (keys != null) {
            from = behindChunk(at);
            int key = behindNumber(at);
            if (!isText(key, from)) {
                throw new Bad("not UTF-8");
            }
            // Strings, because Java's sets sort comparable keys with equal hashes, and would
            // search buffers linearly.
            if (!keys.add(new String(data, key, from - key, StandardCharsets.ISO_8859_1))) {
                throw new Bad("duplicate key");
            }
            if (node.keys != null) {
                node.target.item(row);
                node.keys.bytes(row, data, key, from - key);
            }
        }
        int end = over(node.item, from, row);
        if (end == at && ++emptyItems > MOST_EMPTY_ITEMS) {
            throw new Bad("more than " + MOST_EMPTY_ITEMS + " items without a byte");
        }
        return end;
    }

    /** The offset after a varint of up to 64 bits, in up to ten bytes. */
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
        return number(at, behindNumber(at));
    }

    private long number(int at, int end) {
        long bits = 0;
        int size = end - at;
        if (FIRST_IS_LOWEST && size > 2 && size <= 8 && at + 8 <= data.length) {
            // Seven bits of each byte, put together by twos.
            bits = word(at) & ~HIGHEST_BITS & -1L >>> 8 * (8 - size);
            bits = bits & 0x007f007f007f007fL | (bits & 0x7f007f007f007f00L) >>> 1;
            bits = bits & 0x00003fff00003fffL | (bits & 0x3fff00003fff0000L) >>> 2;
            bits = bits & 0x000000000fffffffL | (bits & 0x0fffffff00000000L) >>> 4;
        } else {
            for (int i = at, shift = 0; i < end; i++, shift += 7) {
                bits |= (data[i] & 0x7fL) << shift;
            }
        }
        return bits >>> 1 ^ -(bits & 1);
    }

    /** The offset after a varint of up to 32 bits, in up to five bytes. */
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

    private boolean isText(int here, int end) {
        while (here + 8 <= end && (word(here) & HIGHEST_BITS) == 0) {
            here += 8;
        }
        int left = end - here;
        if (FIRST_IS_LOWEST && left > 0 && left < 8 && here + 8 <= data.length) {
            // What is behind the text does not count.
            if ((word(here) & HIGHEST_BITS >>> 8 * (8 - left)) == 0) {
                return true;
            }
        }
        while (here < end) {
            int length = data[here] >= 0 ? 1 : encoded(here, end);
            if (length == 0) {
                return false;
            }
            here += length;
        }
        return true;
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

    private void decimal(AvroNode node, int at, int end) {
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
            String text =
                    size > 64
                            ? "a number of " + size + " bytes"
                            : new BigDecimal(number, node.scale).toPlainString();
            throw new Bad(text + " has more than " + node.precision + " digits");
        }
    }
}
