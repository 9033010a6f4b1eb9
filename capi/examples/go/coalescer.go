package main

/*
#cgo pkg-config: rxo
#include <stdlib.h>
#include <rxo.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// PacketBytes is the length of a buffer.
const PacketBytes = 2048

// A Coalescer writes batches of IP packets to a TUN as fewer and larger ones. Use it from one goroutine at a time.
//
// A call from Go into C costs as much as coalescing several packets. So there are two calls a batch: one pushes all
// packets, one ends the poll and writes all deliveries. No packet is copied: the buffers are memory of C, to which the
// engine may point without pinning.
type Coalescer struct {
	Buffers [][]byte // for the packets of the next batch

	engine  *C.rxo_engine
	memory  unsafe.Pointer
	packets []C.rxo_packet
	written *C.size_t
	began   time.Time
}

// NewCoalescer returns a coalescer for batches of at most the given number of packets.
func NewCoalescer(batch int) (*Coalescer, error) {
	policy := C.CString("linux-gro")
	defer C.free(unsafe.Pointer(policy))
	// The text of rxo_error belongs to the thread of the call that failed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	engine := C.rxo_new(policy, C.RXO_IP, C.size_t(batch))
	if engine == nil {
		return nil, lastError("rxo_new")
	}
	packets := C.calloc(C.size_t(batch), C.sizeof_rxo_packet)
	c := &Coalescer{
		Buffers: make([][]byte, batch),
		engine:  engine,
		memory:  C.calloc(C.size_t(batch), PacketBytes),
		packets: unsafe.Slice((*C.rxo_packet)(packets), batch),
		written: (*C.size_t)(C.calloc(1, C.sizeof_size_t)),
		began:   time.Now(),
	}
	for index := range c.Buffers {
		at := unsafe.Add(c.memory, index*PacketBytes)
		c.packets[index].data = (*C.uint8_t)(at)
		c.Buffers[index] = unsafe.Slice((*byte)(at), PacketBytes)
	}
	return c, nil
}

// Close frees the engine and the buffers.
func (c *Coalescer) Close() {
	C.rxo_free(c.engine)
	C.free(unsafe.Pointer(&c.packets[0]))
	C.free(unsafe.Pointer(c.written))
	C.free(c.memory)
}

// SetLength says how many bytes the packet in a buffer has.
func (c *Coalescer) SetLength(index, bytes int) {
	c.packets[index].len = C.size_t(bytes)
}

// Write coalesces the packets in the first buffers and writes them to tun, a non-blocking TUN with a virtio header. It
// waits while tun has no room, and returns how many deliveries were written. When it returns, also with an error, the
// buffers are free again.
func (c *Coalescer) Write(tun syscall.RawConn, packets int) (deliveries int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := C.uint64_t(time.Since(c.began))
	taken := C.rxo_push_many(c.engine, &c.packets[0], C.size_t(packets), now)
	if taken < 0 {
		return 0, lastError("rxo_push_many")
	}
	code := C.int(C.RXO_OK)
	err = tun.Write(func(fd uintptr) bool {
		code = C.rxo_poll_writev(c.engine, C.int(fd), now, nil, c.written)
		deliveries += int(*c.written)
		return code != C.RXO_AGAIN
	})
	if err == nil && code != C.RXO_OK {
		err = lastError("rxo_poll_writev")
	}
	if err == nil && int(taken) < packets {
		err = fmt.Errorf("only %d of %d packets are valid", taken, packets)
	}
	// Nothing is left unless there was an error, perhaps before the engine was asked.
	if err != nil {
		C.rxo_flush(c.engine, now)
	}
	var dropped C.rxo_delivery
	for err != nil && C.rxo_next(c.engine, &dropped) {
	}
	C.rxo_release(c.engine, nil)
	return deliveries, err
}

// lastError returns the error of the last call on this thread.
func lastError(call string) error {
	return errors.New(call + ": " + C.GoString(C.rxo_error()))
}
