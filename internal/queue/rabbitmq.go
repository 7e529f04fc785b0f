package queue

import "errors"

func newRabbitMQ(string) (Broker, error) { return nil, errors.New("coming within minutes") }
