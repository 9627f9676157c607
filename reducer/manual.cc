#include "reducer/manual.h"

namespace tributary {

docs::Manual ReducerManual() {
  return {
      .section = 8,
      .description =
          {"reducer receives the samples of all kernel-collectors, names their stacks, stores them and shows them: "
           "on a web page, by an HTTP API for tributary(1), and as OTLP profiles for other programs (--export). Run "
           "one for a whole fleet, or several with the collectors spread over them. It needs no privileges.",
           "Collectors connect to --intake-listen. The page, the API and the metrics are at --http-listen. Both listen "
           "on 127.0.0.1 only, unless the option names another address.",
           "The intake can require TLS, client certificates and tokens. The page and the API have neither TLS nor "
           "passwords: let only networks that you trust reach them.",
           "Samples are kept in --data-dir, or in the place that --store names, for the time of --retention. When they "
           "reach --store-bytes-max, the oldest samples are removed."},
      .environment = {{"SOURCE_DATE_EPOCH",
                       "The date of the page that --print-docs man prints, in seconds since 1970."}},
      .files = {{"/etc/tributary/reducer.yaml",
                 "The configuration file that packages install, for --config. Its keys are the options' names with _ "
                 "for each dash. --print-docs yaml prints it anew."},
                {"/var/lib/tributary",
                 "The data directory of a reducer that runs as root. For other users it is $XDG_STATE_HOME/tributary "
                 "or, without that variable, ~/.local/state/tributary."}},
      .signals = {{"SIGTERM, SIGINT",
                   "Receive no more samples, store and export the samples that were received, and exit."},
                  {"SIGHUP",
                   "Read the options again. Options that mention SIGHUP in their description take effect at once. The "
                   "log names the other options that changed: they need a restart."}},
      .exit_status = {{"0",
                       "The program stopped after a signal, or printed what an option asked for. With --health-check: "
                       "it is healthy."},
                      {"1",
                       "The program could not start. The message on standard error says what to do. With "
                       "--health-check: it is not healthy."},
                      {"2", "An option is wrong."}},
      .examples = {{"Receive the samples of this machine's collector, and show them at http://127.0.0.1:4040/:",
                    "reducer --data-dir /var/lib/tributary"},
                   {"Receive the samples of a fleet by TLS, from collectors that send a token:",
                    "reducer --intake-listen 0.0.0.0:8000 \\\n"
                    "    --tls-cert server.pem --tls-key server.key --intake-token-file tokens"},
                   {"Send all samples to an OpenTelemetry Collector:",
                    "reducer --export 'otlp://collector:4317?signal=profiles'"}},
      .see_also = {"kernel-collector(8)", "k8s-collector(8)", "tributary(1)"},
  };
}

}  // namespace tributary
