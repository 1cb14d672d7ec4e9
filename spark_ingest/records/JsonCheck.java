package millrace;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Checks that bytes are exactly one JSON object whose values fit the columns.
 *
 * <p>Spark rounds decimals, truncates timestamps, converts numbers that are too large to infinity,
 * and reads the last of duplicate fields. This check returns null if the columns have the values
 * unchanged, and otherwise the reason, which names the field. Fields without a column are skipped.
 */
public final class JsonCheck implements UDF1 {
    private static final int STRUCT = 0;
    private static final int ARRAY = 1;
    private static final int MAP = 2;
    private static final int BOOLEAN = 3;
    private static final int INT = 4;
    private static final int LONG = 5;
    private static final int FLOAT = 6;
    private static final int DOUBLE = 7;
    private static final int DECIMAL = 8;
    private static final int STRING = 9;
    private static final int BINARY = 10;
    private static final int DATE = 11;
    private static final int TIMESTAMP = 12;
    private static final int TIMESTAMP_NTZ = 13;
    private static final List KINDS =
            Arrays.asList(
                    new String[] {
                        "struct", "array", "map", "boolean", "integer", "long", "float", "double",
                        "decimal", "string", "binary", "date", "timestamp", "timestamp_ntz"
                    });

    // Digits that distinguish each float, and each double, from the next.
    private static final int FLOAT_DIGITS = 9;
    private static final int DOUBLE_DIGITS = 17;
    private static final List NO_NUMBERS =
            Arrays.asList(
                    new String[] {"NaN", "INF", "+INF", "-INF", "Infinity", "+Infinity", "-Infinity"});
    // Java parses a number in quadratic time. Also Jackson's limit for a number.
    private static final int LONGEST_NUMBER = 1000;
    private static final int LONGEST_SHOWN = 64;
    private static final int LONGEST_PATH = 400;
    private static final int MICROS = 6;

    private static final String DAY = "([+-]?\\d{4,6})-(\\d\\d)-(\\d\\d)";
    private static final Pattern DATES = Pattern.compile(DAY);
    private static final Pattern TIMES =
            Pattern.compile(
                    DAY
                            + "(?:[T ](\\d\\d):(\\d\\d)(?::(\\d\\d)(?:\\.(\\d+))?"
                            + "( ?(?:Z|UTC|[+-]\\d\\d(?::?\\d\\d)?))?)?)?");

    private static final JsonFactory FACTORY = factory();

    private final String columns;
    private transient Node root;

    /**
     * Creates the check for columns.
     *
     * @param columns Spark's JSON of the struct type of the object.
     */
    public JsonCheck(String columns) {
        this.columns = columns;
    }

    /** Null if the values fit the columns; otherwise the reason. */
    public Object call(Object value) throws IOException {
        if (value == null) {
            return null;
        }
        if (root == null) {
            root = node(DataType.fromJson(columns));
        }
        String text;
        try {
            ByteBuffer bytes = ByteBuffer.wrap((byte[]) value);
            text = StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
        } catch (CharacterCodingException bad) {
            return "not UTF-8";
        }
        Walk walk = new Walk(FACTORY.createParser(text));
        try {
            walk.whole(root);
            return null;
        } catch (Bad bad) {
            return walk.place() + bad.getMessage();
        } catch (JsonProcessingException bad) {
            return "not JSON: " + bad.getOriginalMessage();
        } finally {
            walk.parser.close();
        }
    }

    private static JsonFactory factory() {
        JsonFactoryBuilder made = new JsonFactoryBuilder();
        // Spark accepts these too, and Python writes them.
        made.enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS);
        // Jackson's table of names fails where many of one hash come.
        made.disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES);
        return (JsonFactory) made.build();
    }

    private static Node node(DataType of) {
        Node made = new Node();
        String name = of.typeName();
        made.kind = KINDS.indexOf(of instanceof DecimalType ? "decimal" : name);
        if (made.kind < 0) {
            throw new IllegalArgumentException("no JSON is read as " + name);
        }
        if (made.kind == STRUCT) {
            made.fields = new HashMap();
            StructField[] fields = ((StructType) of).fields();
            for (int i = 0; i < fields.length; i++) {
                made.fields.put(fields[i].name(), node(fields[i].dataType()));
            }
        } else if (made.kind == ARRAY) {
            made.item = node(((ArrayType) of).elementType());
        } else if (made.kind == MAP) {
            made.item = node(((MapType) of).valueType());
        } else if (made.kind == DECIMAL) {
            made.precision = ((DecimalType) of).precision();
            made.scale = ((DecimalType) of).scale();
        }
        return made;
    }

    private static final class Node {
        int kind;
        int precision;
        int scale;
        Node item;
        Map fields;
    }

    /** The reason; the walk has the path. */
    private static final class Bad extends RuntimeException {
        Bad(String what) {
            super(what, null, false, false);
        }
    }

    /** A walk over one object: each method starts at a value's first token and ends at its last. */
    private static final class Walk {
        final JsonParser parser;
        private final StringBuilder path = new StringBuilder();

        Walk(JsonParser parser) {
            this.parser = parser;
        }

        String place() {
            if (path.length() > LONGEST_PATH) {
                path.replace(LONGEST_PATH / 2, path.length() - LONGEST_PATH / 2, " ... ");
            }
            return path.length() == 0 ? "" : path + ": ";
        }

        void whole(Node root) throws IOException {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new Bad("not a JSON object");
            }
            over(root);
            if (parser.nextToken() != null) {
                throw new Bad("more than one value");
            }
        }

        private void over(Node node) throws IOException {
            JsonToken token = parser.currentToken();
            if (token == JsonToken.VALUE_NULL) {
                return;
            }
            switch (node.kind) {
                case STRUCT:
                    need(token == JsonToken.START_OBJECT, "an object");
                    struct(node);
                    break;
                case ARRAY:
                    need(token == JsonToken.START_ARRAY, "an array");
                    array(node);
                    break;
                case MAP:
                    need(token == JsonToken.START_OBJECT, "an object");
                    map(node);
                    break;
                case BOOLEAN:
                    need(token.isBoolean(), "a boolean");
                    break;
                case INT:
                case LONG:
                    wholeNumber(node.kind == INT);
                    break;
                case FLOAT:
                case DOUBLE:
                    approximate(node.kind == FLOAT);
                    break;
                case DECIMAL:
                    decimal(node);
                    break;
                case STRING:
                    text();
                    break;
                case BINARY:
                    need(token == JsonToken.VALUE_STRING, "base64");
                    binary();
                    break;
                case DATE:
                    need(token == JsonToken.VALUE_STRING, "a date as text");
                    time(DATES, "a date like 2026-01-31", false);
                    break;
                default:
                    need(token == JsonToken.VALUE_STRING, "a time as text");
                    time(TIMES, "a time like 2026-01-31T12:00:00Z", node.kind == TIMESTAMP_NTZ);
            }
        }

        private void struct(Node node) throws IOException {
            Set seen = new HashSet();
            int mark = path.length();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                Node field = (Node) node.fields.get(name);
                parser.nextToken();
                if (field == null) {
                    parser.skipChildren();
                    continue;
                }
                path.append(mark == 0 ? "" : ".").append(name);
                if (!seen.add(name)) {
                    throw new Bad("duplicate field");
                }
                over(field);
                path.setLength(mark);
            }
        }

        private void array(Node node) throws IOException {
            int mark = path.length();
            path.append("[]");
            while (parser.nextToken() != JsonToken.END_ARRAY) {
                over(node.item);
            }
            path.setLength(mark);
        }

        private void map(Node node) throws IOException {
            Set seen = new HashSet();
            int mark = path.length();
            path.append("{}");
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String key = parser.currentName();
                sound(key);
                if (!seen.add(key)) {
                    throw new Bad("duplicate key");
                }
                parser.nextToken();
                over(node.item);
            }
            path.setLength(mark);
        }

        private void wholeNumber(boolean isInt) throws IOException {
            need(parser.currentToken() == JsonToken.VALUE_NUMBER_INT, "a whole number");
            String said = parser.getText();
            BigDecimal number = number(said);
            boolean fits =
                    isInt
                            ? number.compareTo(BigDecimal.valueOf(number.intValue())) == 0
                            : number.compareTo(BigDecimal.valueOf(number.longValue())) == 0;
            if (!fits) {
                throw new Bad(shown(said) + " is wider than " + (isInt ? "an int" : "a bigint"));
            }
        }

        /** A decimal number is read as the nearest float; an integer must be exact. */
        private void approximate(boolean isFloat) throws IOException {
            JsonToken token = parser.currentToken();
            String said = parser.getText();
            if (NO_NUMBERS.contains(said)) {
                return;
            }
            need(token.isNumeric(), "a number");
            BigDecimal number = number(said);
            double held = isFloat ? parser.getFloatValue() : parser.getDoubleValue();
            boolean isLost = Double.isInfinite(held) || held == 0 && number.signum() != 0;
            if (!isLost && token == JsonToken.VALUE_NUMBER_FLOAT) {
                int digits = number.stripTrailingZeros().precision();
                isLost = digits > (isFloat ? FLOAT_DIGITS : DOUBLE_DIGITS);
            } else if (!isLost) {
                String shortest = isFloat ? Float.toString((float) held) : Double.toString(held);
                isLost = new BigDecimal(shortest).compareTo(number) != 0;
            }
            if (isLost && (Double.isInfinite(held) || new BigDecimal(held).compareTo(number) != 0)) {
                throw new Bad(
                        shown(said) + " is no number of a " + (isFloat ? "float" : "double"));
            }
        }

        private void decimal(Node node) throws IOException {
            JsonToken token = parser.currentToken();
            need(token.isNumeric() || token == JsonToken.VALUE_STRING, "a number");
            String said = parser.getText();
            BigDecimal number = number(said).stripTrailingZeros();
            if (number.scale() > node.scale) {
                throw new Bad(
                        shown(said) + " has more than " + node.scale + " digits behind the point");
            }
            long before = (long) number.precision() - number.scale();
            if (number.signum() != 0 && before > node.precision - node.scale) {
                throw new Bad(
                        shown(said)
                                + " has more than "
                                + (node.precision - node.scale)
                                + " digits before the point");
            }
        }

        /** Values other than strings are read as JSON text, numbers as doubles. */
        private void text() throws IOException {
            int depth = 0;
            do {
                JsonToken token = parser.currentToken();
                if (token == JsonToken.VALUE_STRING) {
                    sound(parser.getText());
                } else if (token == JsonToken.FIELD_NAME) {
                    sound(parser.currentName());
                } else if (token == JsonToken.VALUE_NUMBER_FLOAT) {
                    String said = parser.getText();
                    double held = parser.getDoubleValue();
                    if (Double.isInfinite(held)
                            || Double.isNaN(held)
                            || new BigDecimal(Double.toString(held)).compareTo(number(said)) != 0) {
                        throw new Bad(shown(said) + " is no number of a double");
                    }
                } else if (token.isStructStart()) {
                    depth++;
                } else if (token.isStructEnd()) {
                    depth--;
                }
            } while (depth > 0 && parser.nextToken() != null);
        }

        private void binary() throws IOException {
            String said = parser.getText();
            boolean isSame;
            try {
                isSame = Base64.getEncoder().encodeToString(parser.getBinaryValue()).equals(said);
            } catch (JsonProcessingException bad) {
                isSame = false;
            }
            if (!isSame) {
                throw new Bad("not base64");
            }
        }

        private void time(Pattern pattern, String what, boolean isLocal) throws IOException {
            String said = parser.getText();
            Matcher found = pattern.matcher(said);
            if (!found.matches()) {
                throw new Bad(shown(said) + " is not " + what);
            }
            try {
                LocalDate.of(part(found, 1), part(found, 2), part(found, 3));
                if (pattern == DATES) {
                    return;
                }
                LocalTime.of(part(found, 4), part(found, 5), part(found, 6));
            } catch (DateTimeException none) {
                throw new Bad(shown(said) + " is no such time");
            }
            String fraction = found.group(7);
            for (int i = MICROS; fraction != null && i < fraction.length(); i++) {
                if (fraction.charAt(i) != '0') {
                    throw new Bad(shown(said) + " is finer than microseconds");
                }
            }
            if (isLocal && found.group(8) != null) {
                throw new Bad(shown(said) + " has a zone, and its column none");
            }
        }

        private static int part(Matcher found, int group) {
            String digits = found.group(group);
            return digits == null ? 0 : Integer.parseInt(digits);
        }

        private static BigDecimal number(String said) {
            if (said.length() > LONGEST_NUMBER) {
                throw new Bad(
                        "a number of " + said.length() + " characters: the longest has "
                                + LONGEST_NUMBER);
            }
            BigDecimal number;
            try {
                number = new BigDecimal(said);
            } catch (NumberFormatException bad) {
                throw new Bad(shown(said) + " is not a number");
            }
            // Spark would round a zero, too, in time proportional to its exponent.
            if (number.signum() == 0 && Math.abs((long) number.scale()) > LONGEST_NUMBER) {
                throw new Bad(shown(said) + " has too large an exponent");
            }
            return number;
        }

        private void need(boolean isThere, String what) {
            if (!isThere) {
                throw new Bad("not " + what);
            }
        }

        /** Rejects half a surrogate pair, which UTF-8 cannot encode. */
        private static void sound(String text) {
            for (int i = 0; i < text.length(); i++) {
                if (Character.isSurrogate(text.charAt(i))) {
                    boolean isPair =
                            i + 1 < text.length()
                                    && Character.isSurrogatePair(
                                            text.charAt(i), text.charAt(i + 1));
                    if (!isPair) {
                        throw new Bad("half a surrogate pair");
                    }
                    i++;
                }
            }
        }

        private static String shown(String said) {
            return said.length() > LONGEST_SHOWN
                    ? said.substring(0, LONGEST_SHOWN) + " ..."
                    : said;
        }
    }
}
