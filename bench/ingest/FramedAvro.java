package bench;

import io.apicurio.registry.utils.converter.avro.AvroData;
import io.apicurio.registry.utils.converter.avro.AvroDataConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/**
 * Values of a zero byte, a 4-byte schema id and Avro, for Kafka Connect. Schemas come from files
 * named by their ids, which asks no registry and so favours Connect a little.
 */
public class FramedAvro implements Converter {
  private final Map<Integer, GenericDatumReader<Object>> readers = new HashMap<>();
  private Path schemas;
  private AvroData data;

  @Override
  public void configure(Map<String, ?> settings, boolean isKey) {
    schemas = Path.of((String) settings.get("schemas"));
    data = new AvroData(new AvroDataConfig(settings));
  }

  @Override
  public byte[] fromConnectData(String topic, org.apache.kafka.connect.data.Schema schema, Object value) {
    throw new UnsupportedOperationException("reads only");
  }

  @Override
  public SchemaAndValue toConnectData(String topic, byte[] value) {
    if (value == null) {
      return SchemaAndValue.NULL;
    }
    if (value.length < 5 || value[0] != 0) {
      throw new DataException("not framed");
    }
    GenericDatumReader<Object> reader = readers.computeIfAbsent(ByteBuffer.wrap(value).getInt(1), this::reader);
    try {
      var decoder = DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null);
      return data.toConnectData(reader.getSchema(), reader.read(null, decoder));
    } catch (IOException | RuntimeException error) {
      throw new DataException("does not decode", error);
    }
  }

  private GenericDatumReader<Object> reader(int id) {
    try {
      String text = Files.readString(schemas.resolve(id + ".avsc"));
      return new GenericDatumReader<>(new Schema.Parser().parse(text));
    } catch (IOException error) {
      throw new DataException("unknown schema " + id, error);
    }
  }
}
