// Command memcached_exporter replaces prom/memcached-exporter in clusters that cannot
// reach an image registry. It accepts the flags that the StatefulSet passes. It serves
// those metrics of the published exporter that the memcached command `stats` reports,
// under the same names, so that dashboards and alerts work. Where images can be pulled,
// the published exporter runs instead.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// timeout limits one exchange with memcached. A healthy server answers within 1 ms.
const timeout = time.Second

// metric maps one statistic of memcached to one sample of a metric. kind and help are
// empty for all but the first sample of a metric.
type metric struct {
	name, kind, help, labels, stat string
}

// metrics is in the order of the output. Samples of the same metric are adjacent, as the
// exposition format requires.
var metrics = []metric{
	{"memcached_uptime_seconds", "counter", "Number of seconds since the server started.", "", "uptime"},
	{"memcached_current_bytes", "gauge", "Current number of bytes used to store items.", "", "bytes"},
	{"memcached_limit_bytes", "gauge", "Number of bytes this server is allowed to use for storage.", "", "limit_maxbytes"},
	{"memcached_current_items", "gauge", "Current number of items stored by this instance.", "", "curr_items"},
	{"memcached_items_total", "counter", "Total number of items stored during the life of this instance.", "", "total_items"},
	{"memcached_items_evicted_total", "counter", "Total number of valid items removed from cache to free memory for new items.", "", "evictions"},
	{"memcached_items_reclaimed_total", "counter", "Total number of times an entry was stored using memory from an expired entry.", "", "reclaimed"},
	{"memcached_current_connections", "gauge", "Current number of open connections.", "", "curr_connections"},
	{"memcached_max_connections", "gauge", "Maximum number of clients allowed.", "", "max_connections"},
	{"memcached_connections_total", "counter", "Total number of connections opened since the server started running.", "", "total_connections"},
	{"memcached_connections_rejected_total", "counter", "Total number of connections rejected due to hitting the memcached's -c limit.", "", "rejected_connections"},
	{"memcached_read_bytes_total", "counter", "Total number of bytes read by this server from network.", "", "bytes_read"},
	{"memcached_written_bytes_total", "counter", "Total number of bytes sent by this server to network.", "", "bytes_written"},
	{"memcached_commands_total", "counter", "Total number of all requests broken down by command (get, set, etc.) and status.", `{command="get",status="hit"}`, "get_hits"},
	{"memcached_commands_total", "", "", `{command="get",status="miss"}`, "get_misses"},
	{"memcached_commands_total", "", "", `{command="delete",status="hit"}`, "delete_hits"},
	{"memcached_commands_total", "", "", `{command="delete",status="miss"}`, "delete_misses"},
	{"memcached_commands_total", "", "", `{command="touch",status="hit"}`, "touch_hits"},
	{"memcached_commands_total", "", "", `{command="touch",status="miss"}`, "touch_misses"},
	{"memcached_commands_total", "", "", `{command="set",status="hit"}`, "cmd_set"},
	{"memcached_commands_total", "", "", `{command="flush",status="hit"}`, "cmd_flush"},
}

func main() {
	memcached := flag.String("memcached.address", "localhost:11211", "address of the memcached server")
	listen := flag.String("web.listen-address", ":9150", "address to listen on")
	path := flag.String("web.telemetry-path", "/metrics", "HTTP path of the metrics")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc(*path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		stats, err := readStats(*memcached)
		if err != nil {
			log.Printf("read statistics of %s: %v", *memcached, err)
		}
		writeMetrics(w, stats)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "metrics: %s\n", *path)
	})
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: timeout}
	log.Printf("listening on %s", *listen)
	if err := server.ListenAndServe(); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// readStats returns the general statistics of the memcached server. It returns nil and an
// error if the server does not answer.
func readStats(address string) (map[string]string, error) {
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "stats\r\nquit\r\n"); err != nil {
		return nil, err
	}
	stats := map[string]string{}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if lines.Text() == "END" {
			return stats, nil
		}
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "STAT" {
			stats[f[1]] = f[2]
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, io.ErrUnexpectedEOF
}

// writeMetrics writes the statistics in the Prometheus text format. Nil statistics are
// written as memcached_up 0.
func writeMetrics(w io.Writer, stats map[string]string) {
	up := 0
	if stats != nil {
		up = 1
	}
	out := bufio.NewWriter(w)
	defer out.Flush()
	_, _ = fmt.Fprintf(out, "# HELP memcached_up Could the memcached server be reached.\n# TYPE memcached_up gauge\nmemcached_up %d\n", up)
	if version, ok := stats["version"]; ok {
		_, _ = fmt.Fprintf(out, "# HELP memcached_version The version of this memcached server.\n# TYPE memcached_version gauge\nmemcached_version{version=%q} 1\n", version)
	}
	for _, m := range metrics {
		value, ok := stats[m.stat]
		if !ok {
			continue
		}
		if m.kind != "" {
			_, _ = fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		}
		_, _ = fmt.Fprintf(out, "%s%s %s\n", m.name, m.labels, value)
	}
}
