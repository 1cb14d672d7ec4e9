package millrace;

import java.util.Arrays;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Inflates the payloads of AWS Glue Schema Registry: the byte 3, the compression (0: none, 5: zlib),
 * the UUID of the schema's version, then Avro, compressed or not. All other bytes are returned as
 * they are, also those whose payload is not exactly one zlib stream, or too long.
 */
public final class GlueInflate implements UDF1 {
    private static final int HEADER = 18;
    private static final byte VERSION = 3;
    private static final byte ZLIB = 5;

    private final int longest;

    /**
     * Creates the function.
     *
     * @param longest Maximum bytes of the result.
     */
    public GlueInflate(int longest) {
        this.longest = longest;
    }

    /** The uncompressed form of framed bytes; null for null. */
    public Object call(Object value) {
        return value == null ? null : inflated((byte[]) value);
    }

    /** The uncompressed form of framed bytes. */
    public byte[] inflated(byte[] data) {
        boolean isFramed = data.length >= HEADER && data[0] == VERSION && data[1] == ZLIB;
        if (!isFramed || data.length > longest) {
            return data;
        }
        Inflater inflater = new Inflater();
        try {
            inflater.setInput(data, HEADER, data.length - HEADER);
            // One byte more, which shows that the result is too long.
            long most = longest + 1L;
            byte[] found = Arrays.copyOf(data, (int) Math.min(most, 1024L + 4L * data.length));
            int size = HEADER;
            while (!inflater.finished()) {
                if (size > longest) {
                    return data;
                }
                if (size == found.length) {
                    found = Arrays.copyOf(found, (int) Math.min(most, 2L * size));
                }
                int more = inflater.inflate(found, size, found.length - size);
                // It wants more input, or a dictionary.
                if (more == 0 && !inflater.finished()) {
                    return data;
                }
                size += more;
            }
            if (inflater.getRemaining() > 0 || size > longest) {
                return data;
            }
            found[1] = 0;
            return Arrays.copyOf(found, size);
        } catch (DataFormatException error) {
            return data;
        } finally {
            inflater.end();
        }
    }
}
