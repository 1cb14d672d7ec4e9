package millrace;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Reads the records of offset ranges with a Kafka consumer; Spark's source is slower, because it
 * reads the clock twice and creates two rows for each record.
 *
 * <p>A range is a partition, the start offset, -1 for the earliest, and the end offset, exclusive.
 * Each record is returned once, in the order of its partition. Offsets without a record, due to
 * transactions and compaction, are skipped; the task fails if records have expired.
 */
public final class KafkaRecords implements FlatMapFunction {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final Duration CLOSE = Duration.ofSeconds(1L);

    private final HashMap options;
    private final String topic;
    private final long patience;
    private transient Reader kept;

    /**
     * Creates the reader of a topic.
     *
     * @param options  The consumer's options, as strings.
     * @param topic    Its name.
     * @param patience Timeout in milliseconds without a record.
     */
    public KafkaRecords(Map options, String topic, Integer patience) {
        this.options = new HashMap(options);
        this.options.put("key.deserializer", ByteArrayDeserializer.class.getName());
        this.options.put("value.deserializer", ByteArrayDeserializer.class.getName());
        this.options.put("enable.auto.commit", "false");
        this.options.put("auto.offset.reset", "none");
        this.options.put("allow.auto.create.topics", "false");
        this.topic = topic;
        this.patience = patience.longValue();
    }

    /** The records of a task: one list of ranges, which are lists of three numbers. */
    public Iterator call(Object task) {
        final Reader reader = new Reader();
        TaskContext.get()
                .addTaskCompletionListener(
                        new TaskCompletionListener() {
                            public void onTaskCompletion(TaskContext context) {
                                reader.consumer.close(CLOSE);
                            }
                        });
        reader.begin((List) ((Iterator) task).next());
        return reader;
    }

    /**
     * The records of some ranges in the driver, with a consumer that is reused; invalidates the
     * result of the previous call.
     */
    public Iterator here(List ranges) {
        if (kept == null) {
            kept = new Reader();
        }
        kept.begin(ranges);
        return kept;
    }

    /** Closes the consumer of {@link #here}. */
    public void close() {
        if (kept != null) {
            kept.consumer.close(CLOSE);
            kept = null;
        }
    }

    private final class Reader implements Iterator {
        final KafkaConsumer consumer = new KafkaConsumer(options);
        // End offsets of partitions that are not finished.
        private final Map open = new HashMap();
        private Iterator partitions = Collections.emptyIterator();
        private ConsumerRecords polled;
        private Object[] records = {};
        private int at;
        private int count;
        private long lastProgress;

        void begin(List ranges) {
            Map starts = new HashMap();
            open.clear();
            partitions = Collections.emptyIterator();
            at = 0;
            count = 0;
            lastProgress = System.nanoTime();
            for (int i = 0; i < ranges.size(); i++) {
                List range = (List) ranges.get(i);
                TopicPartition place =
                        new TopicPartition(topic, ((Number) range.get(0)).intValue());
                starts.put(place, Long.valueOf(((Number) range.get(1)).longValue()));
                open.put(place, Long.valueOf(((Number) range.get(2)).longValue()));
            }
            Set before = consumer.assignment();
            consumer.assign(open.keySet());
            consumer.resume(open.keySet());
            Iterator each = starts.entrySet().iterator();
            while (each.hasNext()) {
                Map.Entry start = (Map.Entry) each.next();
                long offset = ((Long) start.getValue()).longValue();
                TopicPartition place = (TopicPartition) start.getKey();
                if (offset < 0) {
                    consumer.seekToBeginning(Collections.singleton(place));
                } else if (!before.contains(place) || consumer.position(place) != offset) {
                    consumer.seek(place, offset);
                }
            }
            close();
        }

        public boolean hasNext() {
            while (at == count) {
                if (partitions.hasNext()) {
                    take((TopicPartition) partitions.next());
                } else if (open.isEmpty()) {
                    return false;
                } else {
                    poll();
                }
            }
            return true;
        }

        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return records[at++];
        }

        /** Selects the records of a partition in its range. */
        private void take(TopicPartition place) {
            records = polled.records(place).toArray();
            at = 0;
            count = records.length;
            Long end = (Long) open.get(place);
            while (count > 0 && (end == null || offset(count - 1) >= end.longValue())) {
                count--;
            }
        }

        private long offset(int of) {
            return ((ConsumerRecord) records[of]).offset();
        }

        private void poll() {
            close();
            if (open.isEmpty()) {
                return;
            }
            if (TaskContext.get() != null) {
                TaskContext.get().killTaskIfInterrupted();
            }
            polled = consumer.poll(POLL);
            partitions = polled.partitions().iterator();
            long now = System.nanoTime();
            if (!polled.isEmpty()) {
                lastProgress = now;
            } else if (now - lastProgress > 1000000L * patience) {
                throw new IllegalStateException(
                        topic + ": no record received for " + patience + " ms: " + open);
            }
        }

        /** Pauses finished partitions, so that later records are not fetched. */
        private void close() {
            List places = new ArrayList(open.keySet());
            for (int i = 0; i < places.size(); i++) {
                TopicPartition place = (TopicPartition) places.get(i);
                if (consumer.position(place) >= ((Long) open.get(place)).longValue()) {
                    open.remove(place);
                    consumer.pause(Collections.singleton(place));
                }
            }
        }
    }
}
