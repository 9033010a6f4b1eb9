// The receiving side of a tunnel: IP packets arrive in UDP datagrams, are coalesced by librxo, and are written to a
// TUN device.
//
//	go build && sudo ./rxo-tunnel -listen 127.0.0.1:5555 -tun tun0
//
// A real tunnel deciphers the datagrams first, in the same buffers.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"
)

const batch = 256

func main() {
	listen := flag.String("listen", "127.0.0.1:5555", "address of the UDP socket")
	name := flag.String("tun", "tun0", "name of the TUN device")
	flag.Parse()
	if err := run(*listen, *name); err != nil {
		fmt.Fprintln(os.Stderr, "rxo-tunnel:", err)
		os.Exit(1)
	}
}

func run(listen, name string) error {
	socket, err := net.ListenPacket("udp", listen)
	if err != nil {
		return err
	}
	peer, err := socket.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	tun, err := openTUN(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	device, err := tun.SyscallConn()
	if err != nil {
		return err
	}
	coalescer, err := NewCoalescer(batch)
	if err != nil {
		return err
	}
	defer coalescer.Close()
	for {
		packets, err := receive(peer, coalescer)
		if err != nil {
			return err
		}
		// A packet that the kernel refuses is no reason to end.
		if _, err := coalescer.Write(device, packets); err != nil {
			fmt.Fprintln(os.Stderr, "rxo-tunnel:", err)
		}
	}
}

// receive waits for datagrams, and puts all that are there into the coalescer's buffers. It returns their number.
func receive(peer syscall.RawConn, c *Coalescer) (packets int, err error) {
	waited := peer.Read(func(fd uintptr) bool {
		for packets < len(c.Buffers) {
			bytes, _, failed := syscall.Recvfrom(int(fd), c.Buffers[packets], syscall.MSG_DONTWAIT)
			if failed == syscall.EAGAIN {
				return packets > 0
			}
			if failed != nil {
				err = failed
				return true
			}
			c.SetLength(packets, bytes)
			packets++
		}
		return true
	})
	if err == nil {
		err = waited
	}
	return packets, err
}

// openTUN creates or opens a TUN device whose packets have a virtio header.
func openTUN(name string) (*os.File, error) {
	const (
		iffTUN, iffNoPI, iffVnetHeader = 0x1, 0x1000, 0x4000
		tunSetIff                      = 0x400454ca
	)
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:15], name)
	request.flags = iffTUN | iffNoPI | iffVnetHeader
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), tunSetIff, uintptr(unsafe.Pointer(&request)))
	if failed != 0 {
		syscall.Close(fd)
		return nil, failed
	}
	return os.NewFile(uintptr(fd), name), nil
}
