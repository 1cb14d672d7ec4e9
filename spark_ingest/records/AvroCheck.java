package millrace;

import org.apache.avro.Schema;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Checks that bytes are exactly one value of an Avro schema: null if they are, otherwise the
 * reason. For trailing bytes the reason is LEFT_OVER and the offset after the value.
 */
public final class AvroCheck implements UDF1 {
    private static final String LEFT_OVER = "+";

    private final String schema;
    private final int begin;
    private transient AvroWalk walk;
    private transient AvroNode root;

    /**
     * Creates the check of a schema.
     *
     * @param schema JSON of the self-contained writer schema.
     * @param begin  Bytes of framing before each value.
     */
    public AvroCheck(String schema, int begin) {
        this.schema = schema;
        this.begin = begin;
    }

    /** Null if the bytes are exactly one value; otherwise the reason. */
    public Object call(Object value) {
        if (value == null) {
            return null;
        }
        if (root == null) {
            root = AvroNode.of(new Schema.Parser().parse(schema));
            walk = new AvroWalk();
        }
        byte[] data = (byte[]) value;
        int end;
        try {
            end = walk.over(root, data, begin, 0);
        } catch (AvroWalk.Bad bad) {
            return bad.reason();
        }
        return end == data.length ? null : LEFT_OVER + end;
    }
}
