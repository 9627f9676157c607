import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Works like an application server on two threads: collections, streams, strings, exceptions. It never ends. */
public class Work {
  record Order(int id, String customer, double sum) {}

  static List<Order> orders(int seed, int count) {
    List<Order> out = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      seed = seed * 1103515245 + 12345;
      out.add(new Order(i, "customer" + Math.floorMod(seed, 97), Math.floorMod(seed, 1000) / 10.0));
    }
    return out;
  }

  static Map<String, Double> totals(List<Order> orders) {
    return orders.stream().collect(Collectors.groupingBy(Order::customer, TreeMap::new, Collectors.summingDouble(Order::sum)));
  }

  static String render(Map<String, Double> totals) {
    StringBuilder out = new StringBuilder();
    totals.entrySet().stream().sorted(Map.Entry.comparingByValue(Comparator.reverseOrder())).limit(10)
        .forEach(e -> out.append(String.format("%s=%.2f;", e.getKey(), e.getValue())));
    return out.toString();
  }

  static int parse(String text) {
    int good = 0;
    for (String part : text.split("[=;]")) {
      try {
        good += Double.parseDouble(part) > 0 ? 1 : 0;
      } catch (NumberFormatException e) {
        good--;
      }
    }
    return good;
  }

  public static void main(String[] arguments) {
    Runnable turns = () -> {
      Map<Integer, Integer> seen = new HashMap<>();
      for (int i = 0;; i++) {
        seen.merge(parse(render(totals(orders(i, 400)))) & 0xff, 1, Integer::sum);
      }
    };
    new Thread(turns, "worker-1").start();
    new Thread(turns, "worker-2").start();
  }
}
