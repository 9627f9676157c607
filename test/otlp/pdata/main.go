// Receives OTLP profiles with the pdata of one release of the OpenTelemetry Collector, over gRPC and HTTP. Prints the
// addresses. Writes each request as this pdata has decoded it into the file that its argument names, one line of JSON
// each, before it answers the request. Ends when stdin is closed.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
)

type receiver struct {
	pprofileotlp.UnimplementedGRPCServer
	mutex  sync.Mutex // of output
	output *os.File
}

func (r *receiver) write(request pprofileotlp.ExportRequest) error {
	text, err := request.MarshalJSON()
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, err = fmt.Fprintf(r.output, "%s\n", text)
	return err
}

// Export receives a request over gRPC.
func (r *receiver) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	return pprofileotlp.NewExportResponse(), r.write(request)
}

// ServeHTTP receives a request over HTTP. The answer is an empty response.
func (r *receiver) ServeHTTP(answer http.ResponseWriter, call *http.Request) {
	answer.Header().Set("Content-Type", call.Header.Get("Content-Type"))
	if err := r.receive(call); err != nil {
		log.Print(err)
		answer.WriteHeader(http.StatusBadRequest)
		return
	}
	if call.Header.Get("Content-Type") == "application/json" {
		_, _ = io.WriteString(answer, "{}")
	}
}

func (r *receiver) receive(call *http.Request) error {
	var body io.Reader = call.Body
	if call.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(call.Body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	bytes, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	request := pprofileotlp.NewExportRequest()
	if call.Header.Get("Content-Type") == "application/json" {
		err = request.UnmarshalJSON(bytes)
	} else {
		err = request.UnmarshalProto(bytes)
	}
	if err != nil {
		return err
	}
	return r.write(request)
}

func main() {
	log.SetFlags(0)
	output, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	grpcSocket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	httpSocket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	r := &receiver{output: output}
	server := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(server, r)
	go func() { log.Fatal(server.Serve(grpcSocket)) }()
	go func() { log.Fatal(http.Serve(httpSocket, r)) }()
	addresses, err := json.Marshal(map[string]string{
		"grpc": grpcSocket.Addr().String(), "http": httpSocket.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", addresses)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
