import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.BadRequestException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NamespaceNotEmptyException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.Endpoint;
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.RegisterTableRequest;
import org.apache.iceberg.rest.requests.RenameTableRequest;
import org.apache.iceberg.rest.requests.UpdateNamespacePropertiesRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/**
 * An Iceberg REST catalog for tests: Iceberg's own handlers over a JDBC catalog.
 *
 * <p>Run by Java's source launcher with the JDBC address and the warehouse. It listens on a free
 * port of 127.0.0.1, prints {@code ready PORT}, and ends when its standard input does, so with
 * whoever started it.
 */
public final class RestCatalogServer {
  private static final List<Endpoint> ENDPOINTS =
      List.of(
          Endpoint.V1_LIST_NAMESPACES,
          Endpoint.V1_CREATE_NAMESPACE,
          Endpoint.V1_LOAD_NAMESPACE,
          Endpoint.V1_NAMESPACE_EXISTS,
          Endpoint.V1_UPDATE_NAMESPACE,
          Endpoint.V1_DELETE_NAMESPACE,
          Endpoint.V1_LIST_TABLES,
          Endpoint.V1_CREATE_TABLE,
          Endpoint.V1_LOAD_TABLE,
          Endpoint.V1_TABLE_EXISTS,
          Endpoint.V1_UPDATE_TABLE,
          Endpoint.V1_DELETE_TABLE,
          Endpoint.V1_RENAME_TABLE,
          Endpoint.V1_REGISTER_TABLE,
          Endpoint.V1_REPORT_METRICS);

  private final JdbcCatalog catalog = new JdbcCatalog();
  private final ObjectMapper mapper = new ObjectMapper();

  private RestCatalogServer(String uri, String warehouse) {
    Configuration settings = new Configuration();
    // Hadoop's own starts a `chmod` for every file.
    settings.set("fs.file.impl", "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem");
    catalog.setConf(settings);
    catalog.initialize(
        "rest", Map.of("uri", uri, "warehouse", warehouse, "jdbc.schema-version", "V1"));
    mapper.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    mapper.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    mapper.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
    RESTSerializers.registerAll(mapper);
  }

  public static void main(String[] arguments) throws IOException {
    RestCatalogServer catalog = new RestCatalogServer(arguments[0], arguments[1]);
    InetSocketAddress address = new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0);
    HttpServer server = HttpServer.create(address, 0);
    server.createContext("/", catalog::handle);
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
    System.out.println("ready " + server.getAddress().getPort());
    System.out.flush();
    while (System.in.read() >= 0) {
      // Whoever started this is there.
    }
    System.exit(0);
  }

  private void handle(HttpExchange exchange) throws IOException {
    int status;
    Object answer;
    try {
      answer = answer(exchange);
      status = answer == null ? 204 : 200;
    } catch (Exception error) {
      status = status(error);
      answer =
          ErrorResponse.builder()
              .responseCode(status)
              .withType(error.getClass().getSimpleName())
              .withMessage(error.getMessage())
              .build();
    }
    byte[] body =
        answer == null || exchange.getRequestMethod().equals("HEAD")
            ? new byte[0]
            : mapper.writeValueAsBytes(answer);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
    if (body.length > 0) {
      exchange.getResponseBody().write(body);
    }
    exchange.close();
  }

  private Object answer(HttpExchange exchange) throws IOException {
    String method = exchange.getRequestMethod();
    String[] path = exchange.getRequestURI().getRawPath().substring(1).split("/");
    String kind = path.length > 1 ? path[1] : "";
    if (kind.equals("config")) {
      return ConfigResponse.builder().withEndpoints(ENDPOINTS).build();
    }
    if (kind.equals("tables") && path[2].equals("rename")) {
      CatalogHandlers.renameTable(catalog, read(exchange, RenameTableRequest.class));
      return null;
    }
    if (!kind.equals("namespaces")) {
      throw new BadRequestException("No such route: %s %s", method, exchange.getRequestURI());
    }
    if (path.length == 2) {
      return method.equals("POST")
          ? CatalogHandlers.createNamespace(catalog, read(exchange, CreateNamespaceRequest.class))
          : CatalogHandlers.listNamespaces(catalog, parent(exchange));
    }
    Namespace namespace = RESTUtil.decodeNamespace(path[2], "%1F");
    if (path.length == 3) {
      return ofNamespace(method, namespace);
    }
    switch (path[3]) {
      case "properties":
        return CatalogHandlers.updateNamespaceProperties(
            catalog, namespace, read(exchange, UpdateNamespacePropertiesRequest.class));
      case "register":
        return CatalogHandlers.registerTable(
            catalog, namespace, read(exchange, RegisterTableRequest.class));
      case "tables":
        return path.length == 4
            ? ofTables(exchange, method, namespace)
            : ofTable(exchange, method, path, namespace);
      default:
        throw new BadRequestException("No such route: %s %s", method, exchange.getRequestURI());
    }
  }

  private Object ofNamespace(String method, Namespace namespace) {
    switch (method) {
      case "HEAD":
        CatalogHandlers.namespaceExists(catalog, namespace);
        return null;
      case "DELETE":
        CatalogHandlers.dropNamespace(catalog, namespace);
        return null;
      default:
        return CatalogHandlers.loadNamespace(catalog, namespace);
    }
  }

  private Object ofTables(HttpExchange exchange, String method, Namespace namespace)
      throws IOException {
    if (method.equals("GET")) {
      return CatalogHandlers.listTables(catalog, namespace);
    }
    CreateTableRequest request = read(exchange, CreateTableRequest.class);
    return request.stageCreate()
        ? CatalogHandlers.stageTableCreate(catalog, namespace, request)
        : CatalogHandlers.createTable(catalog, namespace, request);
  }

  private Object ofTable(
      HttpExchange exchange, String method, String[] path, Namespace namespace)
      throws IOException {
    TableIdentifier table = TableIdentifier.of(namespace, RESTUtil.decodeString(path[4]));
    if (path.length > 5) {
      // Metrics are of no interest here.
      exchange.getRequestBody().readAllBytes();
      return null;
    }
    switch (method) {
      case "HEAD":
        CatalogHandlers.tableExists(catalog, table);
        return null;
      case "POST":
        return CatalogHandlers.updateTable(catalog, table, read(exchange, UpdateTableRequest.class));
      case "DELETE":
        String query = String.valueOf(exchange.getRequestURI().getQuery());
        if (query.contains("purgeRequested=true")) {
          CatalogHandlers.purgeTable(catalog, table);
        } else {
          CatalogHandlers.dropTable(catalog, table);
        }
        return null;
      default:
        return CatalogHandlers.loadTable(catalog, table, SnapshotMode.ALL);
    }
  }

  private <T> T read(HttpExchange exchange, Class<T> type) throws IOException {
    return mapper.readValue(exchange.getRequestBody(), type);
  }

  private static Namespace parent(HttpExchange exchange) {
    String query = exchange.getRequestURI().getRawQuery();
    for (String parameter : query == null ? new String[0] : query.split("&")) {
      if (parameter.startsWith("parent=")) {
        String value = parameter.substring("parent=".length());
        return RESTUtil.namespaceFromQueryParam(
            URLDecoder.decode(value, StandardCharsets.UTF_8), "%1F");
      }
    }
    return Namespace.empty();
  }

  private static int status(Exception error) {
    if (error instanceof NoSuchTableException || error instanceof NoSuchNamespaceException) {
      return 404;
    }
    if (error instanceof CommitFailedException
        || error instanceof AlreadyExistsException
        || error instanceof NamespaceNotEmptyException) {
      return 409;
    }
    if (error instanceof IllegalArgumentException
        || error instanceof ValidationException
        || error instanceof BadRequestException) {
      return 400;
    }
    return 500;
  }
}
