package main

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

const headerBytes, payloadBytes, virtioBytes = 40, 1400, 10

// segment returns a TCP segment over IPv4, the one with this number of its flow.
func segment(number int) []byte {
	packet := make([]byte, headerBytes+payloadBytes)
	copy(packet, []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x0f, 0xa0, 1, 0xbb})
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	binary.BigEndian.PutUint16(packet[4:], uint16(number))
	binary.BigEndian.PutUint32(packet[24:], uint32(number*payloadBytes))
	copy(packet[32:], []byte{0x50, 0x10, 2, 0})
	for index := range packet[headerBytes:] {
		packet[headerBytes+index] = byte(number + index)
	}
	binary.BigEndian.PutUint16(packet[10:], ^sum(packet[:20], 0))
	binary.BigEndian.PutUint16(packet[36:], ^sum(packet[12:], uint32(6+len(packet)-20)))
	return packet
}

func sum(bytes []byte, total uint32) uint16 {
	for at := 0; at+1 < len(bytes); at += 2 {
		total += uint32(binary.BigEndian.Uint16(bytes[at:]))
	}
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}

// pair returns two ends of a connection that keeps packets apart, of which the first plays the TUN.
func pair(t *testing.T) (tun syscall.RawConn, kernel *os.File) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fds[0]), "tun")
	kernel = os.NewFile(uintptr(fds[1]), "kernel")
	t.Cleanup(func() { file.Close(); kernel.Close() })
	tun, err = file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return tun, kernel
}

func coalescer(t *testing.T, batch int) *Coalescer {
	c, err := NewCoalescer(batch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// fill puts segments into the buffers, from the one with this number on.
func fill(c *Coalescer, from int) {
	for index := range c.Buffers {
		c.SetLength(index, copy(c.Buffers[index], segment(from+index)))
	}
}

func TestDatagramsOfAPeerReachTheTUNAsOnePacket(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	sender, err := net.Dial("udp", socket.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	peer, err := socket.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var sent []byte
	for number := 0; number < 8; number++ {
		packet := segment(number)
		sent = append(sent, packet[headerBytes:]...)
		if _, err := sender.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	c := coalescer(t, 8)
	packets, err := receive(peer, c)
	if err != nil || packets != 8 {
		t.Fatalf("%d packets, %v", packets, err)
	}
	tun, kernel := pair(t)
	if deliveries, err := c.Write(tun, packets); err != nil || deliveries != 1 {
		t.Fatalf("%d deliveries, %v", deliveries, err)
	}
	read := make([]byte, 1<<16)
	count, err := kernel.Read(read)
	if err != nil {
		t.Fatal(err)
	}
	header, packet := read[:virtioBytes], read[virtioBytes:count]
	if header[1] != 1 || binary.NativeEndian.Uint16(header[4:]) != payloadBytes {
		t.Fatalf("the virtio header is %v", header)
	}
	if !bytes.Equal(packet[headerBytes:], sent) {
		t.Fatal("the TUN gets other bytes than the peer sent")
	}
}

func TestAFullTUNIsWaitedFor(t *testing.T) {
	const rounds, each = 100, 16
	c := coalescer(t, each)
	tun, kernel := pair(t)
	done := make(chan error, 1)
	go func() {
		for round := 0; round < rounds; round++ {
			fill(c, round*each)
			if _, err := c.Write(tun, each); err != nil {
				done <- err
				kernel.Close()
				return
			}
		}
		done <- nil
	}()
	read := make([]byte, 1<<16)
	for number := 0; number < rounds*each; {
		count, err := kernel.Read(read)
		if err != nil {
			t.Fatal(err, <-done)
		}
		for payload := read[virtioBytes+headerBytes : count]; len(payload) > 0; number++ {
			if !bytes.Equal(payload[:payloadBytes], segment(number)[headerBytes:]) {
				t.Fatalf("segment %d is another", number)
			}
			payload = payload[payloadBytes:]
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAnErrorLeavesNothingBehind(t *testing.T) {
	c := coalescer(t, 4)
	closed, kernel := pair(t)
	kernel.Close()
	fill(c, 0)
	if _, err := c.Write(closed, 4); err == nil || !strings.Contains(err.Error(), "refuses a packet") {
		t.Fatalf("the error is %v", err)
	}
	tun, kernel := pair(t)
	fill(c, 100)
	if deliveries, err := c.Write(tun, 4); err != nil || deliveries != 1 {
		t.Fatalf("%d deliveries, %v", deliveries, err)
	}
	read := make([]byte, 1<<16)
	count, err := kernel.Read(read)
	if err != nil || !bytes.Equal(read[virtioBytes+headerBytes:][:payloadBytes], segment(100)[headerBytes:]) {
		t.Fatalf("%d bytes, %v", count, err)
	}
}
