package millrace;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/** Rows of Spark's Kafka source as Kafka's own records, without Kafka. */
public final class RowsAsRecords implements FlatMapFunction {
    public Iterator call(Object rows) {
        Iterator each = (Iterator) rows;
        List made = new ArrayList();
        while (each.hasNext()) {
            InternalRow row = (InternalRow) each.next();
            byte[] key = row.isNullAt(0) ? null : row.getBinary(0);
            byte[] value = row.isNullAt(1) ? null : row.getBinary(1);
            RecordHeaders headers = new RecordHeaders();
            ArrayData given = row.isNullAt(6) ? null : row.getArray(6);
            for (int i = 0; given != null && i < given.numElements(); i++) {
                InternalRow header = given.getStruct(i, 2);
                String name = header.getUTF8String(0).toString();
                headers.add(name, header.isNullAt(1) ? null : header.getBinary(1));
            }
            made.add(
                    new ConsumerRecord(
                            row.getUTF8String(2).toString(),
                            row.getInt(3),
                            row.getLong(4),
                            row.isNullAt(5) ? 0L : row.getLong(5) / 1000L,
                            TimestampType.CREATE_TIME,
                            -1,
                            -1,
                            key,
                            value,
                            headers,
                            Optional.empty()));
        }
        return made.iterator();
    }
}
