package millrace;

import io.apicurio.registry.utils.converter.AvroConverter;
import io.apicurio.registry.utils.converter.avro.AvroData;
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Apicurio's Avro converter, which writes a null of a column with a default as null.
 *
 * <p>It knows how, but has no setting for it: as it comes, it writes the default in place of the
 * null, and no later step can distinguish the two.
 */
public class NullKeepingConverter<T> extends AvroConverter<T> {
    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        super.configure(settings, isKey);
        try {
            Field data = AvroConverter.class.getDeclaredField("avroData");
            data.setAccessible(true);
            Field keepsNulls = AvroData.class.getDeclaredField("ignoreDefaultForNullables");
            keepsNulls.setAccessible(true);
            keepsNulls.setBoolean(data.get(this), true);
        } catch (ReflectiveOperationException failure) {
            throw new ConnectException("this version of the Avro converter loses nulls", failure);
        }
    }
}
